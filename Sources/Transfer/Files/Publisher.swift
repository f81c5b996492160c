import CLinux
import Curl
import Glibc
import Synchronization
import SystemPackage

/// A publisher of complete part files: it gives them their final names in a crash-safe order. It syncs the data,
/// validates the part file, gives it its name (without replacing, unless the destination permits that), syncs the
/// name, and only then reports success.
///
/// Files that complete close together share their syncs: one of the file system before they get their names, and one of
/// each directory or of the file system after that. The publisher runs on a thread of its own.
final class Publisher: Sendable {
    struct Item: Sendable {
        var part: PartFile
        var destination: FileDestination
        /// The name of the task as recorded on its part file.
        var owner: String
        var size: Int64
        /// Whether the file was verified against a digest.
        var isVerified = false
        /// Called on the publisher's thread.
        var completion: @Sendable (Result<PublishedFile, TransferError>) -> Void
    }

    private struct Inbox {
        var items: [Item] = []
        var isUrgent = false
        var stopped = false
    }

    /// The time that a complete file waits for others to share its syncs with, in milliseconds, while more are in
    /// transfer.
    private static let batchInterval: Int32 = 200
    /// The number of files that ends this wait.
    private static let largestBatch = 1024
    /// The number of files from which one `syncfs` costs less than a sync of each.
    static let sharedSyncThreshold = 8

    private let inbox = Mutex(Inbox())
    private let earlierNames = EarlierNames()
    private let wakeUp: WakeUp
    /// The umask of the process.
    private let umask: mode_t

    /// - Throws: if no descriptor or thread is available; a later attempt may succeed.
    init() throws(TransferError) {
        do {
            wakeUp = try WakeUp(counting: true)
        } catch {
            throw TransferError(.io, "files cannot be published: \(error)", systemError: error.rawValue)
        }
        umask = ProcessFile.umask()
        let started = SystemThread.start(name: "dld-publisher") { [self] in run() }
        guard started else {
            throw TransferError(.io, "there is no thread to publish files on", systemError: EAGAIN)
        }
    }

    /// Enqueues a file.
    ///
    /// - Parameter isUrgent: whether no other file is in transfer, so that waiting for one would be useless.
    func publish(_ item: Item, isUrgent: Bool) {
        let signals = inbox.withLock { inbox in
            inbox.items.append(item)
            let isEnough = isUrgent || inbox.items.count >= Self.largestBatch
            defer { inbox.isUrgent = inbox.isUrgent || isEnough }
            return inbox.items.count == 1 || (isEnough && !inbox.isUrgent)
        }
        if signals { wakeUp.signal() }
    }

    /// Publishes the waiting files at once, since no transfer is running.
    func publishNow() {
        let signals = inbox.withLock { inbox in
            guard !inbox.items.isEmpty, !inbox.isUrgent else { return false }
            inbox.isUrgent = true
            return true
        }
        if signals { wakeUp.signal() }
    }

    func stop() {
        inbox.withLock { $0.stopped = true }
        wakeUp.signal()
    }

    private func run() {
        while true {
            wakeUp.wait()
            let (isUrgent, stopped) = inbox.withLock { ($0.isUrgent, $0.stopped) }
            if !isUrgent, !stopped { wakeUp.wait(atMost: Self.batchInterval) }
            let batch = inbox.withLock { inbox in
                defer {
                    inbox.items = []
                    inbox.isUrgent = false
                }
                return inbox.items
            }
            if !batch.isEmpty { publish(batch) }
            if stopped { return }
        }
    }

    // MARK: One batch

    private func publish(_ batch: [Item]) {
        let synced = synchronize(batch)
        var outcomes: [Result<FileNaming.Named, TransferError>] = []
        outcomes.reserveCapacity(batch.count)
        var naming = FileNaming(umask: umask, earlierNames: earlierNames)
        for (item, failure) in zip(batch, synced) {
            if let failure {
                outcomes.append(.failure(failure))
                continue
            }
            do throws(TransferError) {
                outcomes.append(.success(try naming.name(item)))
            } catch {
                // A file that remains a part file is made accessible to its owner only. Errors are ignored, the original
                // failure is reported.
                if item.part.isNamed { _ = fchmod(item.part.descriptor.raw, 0o600) }
                outcomes.append(.failure(error))
            }
        }
        let unsynced = synchronizeNames(of: batch, outcomes)
        for (index, item) in batch.enumerated() {
            let failure = unsynced[index]
            item.completion(
                outcomes[index].flatMap { named in failure.map { .failure($0) } ?? .success(named.file) })
        }
    }

    /// - Returns: for each item the reason why its data may not be on the disk; `nil` if the data is there.
    private func synchronize(_ batch: [Item]) -> [TransferError?] {
        var failures = [TransferError?](repeating: nil, count: batch.count)
        let sharing = Dictionary(grouping: batch.indices.filter { batch[$0].part.maySharedSync }) {
            batch[$0].part.directory.device
        }.values.filter { $0.count >= Self.sharedSyncThreshold }
        for indices in sharing {
            for (index, result) in zip(indices, PartFile.synchronize(indices.map { batch[$0].part })) {
                if case .failure(let error) = result { failures[index] = error }
            }
        }
        let covered = Set(sharing.joined())
        for index in batch.indices where !covered.contains(index) {
            do throws(TransferError) {
                _ = try batch[index].part.synchronize()
            } catch {
                failures[index] = error
            }
        }
        return failures
    }

    /// - Returns: for each item with a name the reason why the name may not be on the disk; none if it is there.
    private func synchronizeNames(
        of batch: [Item], _ outcomes: [Result<FileNaming.Named, TransferError>]
    ) -> [Int: TransferError] {
        var failures: [Int: TransferError] = [:]
        // Each file system is synced once, after all names were given.
        var fileSystems: [UInt64: TransferError?] = [:]
        let named = outcomes.indices.filter { if case .success = outcomes[$0] { true } else { false } }
        // Runs may have opened a directory each for itself.
        for indices in Dictionary(grouping: named, by: { batch[$0].part.directory.inode }).values {
            guard let directory = indices.first.map({ batch[$0].part.directory }) else { continue }
            let separate = indices.filter { (try? outcomes[$0].get())?.sync == .fileSystem }
            if !separate.isEmpty {
                let failure = fileSystems[directory.device] ?? Self.failure(of: directory.synchronizeFileSystem)
                fileSystems[directory.device] = .some(failure)
                // It covers the directory too.
                if failure == nil { continue }
                // The failure may concern another file; then each is synced on its own.
                for index in separate {
                    failures[index] = Self.failure(of: batch[index].part.descriptor.synchronizeAll)
                }
            }
            if let failure = Self.failure(of: directory.synchronize) {
                for index in indices where failures[index] == nil { failures[index] = failure }
            }
        }
        return failures
    }

    private static func failure(of body: () throws(TransferError) -> Void) -> TransferError? {
        do throws(TransferError) {
            try body()
            return nil
        } catch {
            return error
        }
    }
}
