import NIOCore
import NIOPosix

/// Threads for requests that take long to decode, carry out or encode. Short requests then never wait behind them on
/// the threads that all Swift tasks share. The threads sleep while there is no work.
final class HeavyThreads: TaskExecutor {
    private let pool: NIOThreadPool

    /// - Parameter count: the number of threads. One fewer than the processors leaves one for all other work.
    init(count: Int = min(4, max(1, System.coreCount - 1))) {
        pool = NIOThreadPool(numberOfThreads: count)
        pool.start()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // After the shutdown the job runs at once, on the calling thread.
        pool.submit { [self] _ in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    func shutdown() async {
        try? await pool.shutdownGracefully()  // fails if it was already called
    }
}
