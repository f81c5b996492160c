import Curl
import Synchronization

/// Syncs parts of one file system. Those that wait for a thread together share one sync of all of it: a thousand slow
/// downloads would otherwise keep a disk busy with little else.
final class SharedSync: Sendable {
    typealias Completion = @Sendable (Result<ByteRangeSet, TransferError>) -> Void

    /// From so many parts on one sync of the file system costs less than one for each.
    static let threshold = 8

    private let threads: WorkerThreads
    private let waiting = Mutex<[(part: PartFile, completion: Completion)]>([])

    init(on threads: WorkerThreads) { self.threads = threads }

    /// Brings to the disk what has been written so far.
    ///
    /// - Parameter completion: called on the thread that synced, which may do more there.
    func synchronize(_ part: PartFile, _ completion: @escaping Completion) {
        guard part.maySharedSync else {
            return threads.perform {
                completion(Result { () throws(TransferError) in try part.synchronize() })
            }
        }
        waiting.withLock { $0.append((part, completion)) }
        threads.perform { [self] in work() }
    }

    /// Syncs the parts that wait. Called once for each part; calls whose part was taken along find nothing to do.
    private func work() {
        let taken = waiting.withLock { waiting in
            let count = waiting.count >= Self.threshold ? waiting.count : min(1, waiting.count)
            defer { waiting.removeFirst(count) }
            return Array(waiting[..<count])
        }
        if taken.count == 1 {
            let part = taken[0].part
            return taken[0].completion(Result { () throws(TransferError) in try part.synchronize() })
        }
        for (item, result) in zip(taken, PartFile.synchronize(taken.map(\.part))) { item.completion(result) }
    }
}
