import Curl
import Synchronization

/// Syncs of part files on one file system. Part files that wait for a thread at the same time share one sync of the
/// whole file system. Separate syncs of a thousand slow downloads would occupy most of a disk's time.
final class SharedSync: Sendable {
    typealias Completion = @Sendable (Result<ByteRangeSet, TransferError>) -> Void

    /// The number of part files from which one sync of the file system costs less than a sync of each.
    static let threshold = 8

    private let threads: WorkerThreads
    private let waiting = Mutex<[(part: PartFile, completion: Completion)]>([])

    init(on threads: WorkerThreads) { self.threads = threads }

    /// Syncs the data written to the part file so far.
    ///
    /// - Parameter completion: called on the thread that did the sync; it may do further work there.
    func synchronize(_ part: PartFile, _ completion: @escaping Completion) {
        guard part.maySharedSync else {
            return threads.perform {
                completion(Result { () throws(TransferError) in try part.synchronize() })
            }
        }
        waiting.withLock { $0.append((part, completion)) }
        threads.perform { [self] in work() }
    }

    /// Syncs the waiting part files. It is called once for each of them; a call whose part file was already synced has
    /// nothing to do.
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
