import NIOCore
import NIOPosix

/// Threads for requests that take long to read, to carry out or to write down, so that short ones never stand behind
/// them on the threads that all Swift tasks share. They sleep while there is nothing to do.
final class HeavyThreads: TaskExecutor {
    private let pool: NIOThreadPool

    /// - Parameter count: one fewer than there are processors leaves one to everybody else.
    init(count: Int = min(4, max(1, System.coreCount - 1))) {
        pool = NIOThreadPool(numberOfThreads: count)
        pool.start()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // After the end it runs at once, on the thread that asks.
        pool.submit { [self] _ in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    func shutdown() async {
        try? await pool.shutdownGracefully()  // fails where it has ended already
    }
}
