import CLinux
import Curl
import Glibc
import Synchronization
import SystemPackage

/// A publisher of complete part files: it gives them their final names in a crash-safe order. It syncs the data,
/// validates the part file, renames it (without replacing, unless the destination permits that), syncs the directory,
/// and only then reports success.
///
/// Files that complete close together share their syncs: one of the file system before the renames, and one of each
/// directory after them. The publisher runs on a thread of its own.
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
    private static let sharedSyncThreshold = 8

    /// The maximum number of attempts at a numbered name that others take first.
    private static let raceLimit = 100

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
        var outcomes: [Result<PublishedFile, TransferError>] = []
        outcomes.reserveCapacity(batch.count)
        var directories: [ObjectIdentifier: Directory] = [:]
        for (item, failure) in zip(batch, synced) {
            if let failure {
                outcomes.append(.failure(failure))
                continue
            }
            do throws(TransferError) {
                outcomes.append(.success(try name(item)))
                directories[ObjectIdentifier(item.part.directory)] = item.part.directory
            } catch {
                // A file that remains a part file is made accessible to its owner only.
                _ = fchmod(item.part.descriptor.raw, 0o600)  // errors are ignored, the original failure is reported
                outcomes.append(.failure(error))
            }
        }
        let unsynced = synchronize(Array(directories.values))
        for (index, item) in batch.enumerated() {
            if case .success = outcomes[index], let failure = unsynced[ObjectIdentifier(item.part.directory)] {
                outcomes[index] = .failure(failure)
            }
            item.completion(outcomes[index])
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

    private func name(_ item: Item) throws(TransferError) -> PublishedFile {
        let part = item.part
        let directory = part.directory
        try part.checkName()
        if try part.check(holds: item.size).wasModified {
            throw TransferError(.remoteChanged, "another process changed the part file")
        }
        let path = try part.checkPlace()
        if !item.destination.isPrivate { directory.setPermissions(of: part.descriptor, umask: umask) }
        if let user = item.destination.user { part.record(user: user) }
        if let time = item.destination.modificationTime {
            _ = linux_set_modification_time(part.descriptor.raw, time)  // errors ignored: a wrong time is acceptable
        }
        let wanted = item.destination.name
        func published(_ name: String) -> PublishedFile {
            PublishedFile(path: Directory.path(of: name, in: path), size: item.size, isVerified: item.isVerified)
        }
        if case .overwrite = item.destination.conflict {
            try directory.checkReplacing(wanted, for: item.destination.user)
            guard renameat(directory.descriptor.raw, part.name, directory.descriptor.raw, wanted) == 0 else {
                if errno == EISDIR {
                    throw TransferError(.nameConflict, "\(directory.path(of: wanted)) is a directory")
                }
                throw Self.refusal(errno, part, wanted)
            }
            return published(wanted)
        }
        if try Self.give(wanted, to: part) { return published(wanted) }
        if PartFile.isPublished(wanted, in: directory, by: item.owner) == item.size {
            // The file was published by an earlier process and downloaded again by this one.
            try directory.remove(part.name)
            return published(wanted)
        }
        switch item.destination.conflict {
        case .rename(let numbering): return published(try number(item, numbering))
        case .skip: throw .taken(item.destination, in: directory)
        case .fail, .overwrite: throw .taken(wanted, in: directory)
        }
    }

    /// Renames the part file to a numbered name.
    private func number(
        _ item: Item, _ numbering: @escaping @Sendable (String, Int) -> String
    ) throws(TransferError) -> String {
        let (part, wanted) = (item.part, item.destination.name)
        let directory = part.directory
        if let earlier = earlierNames.find(item.owner, wanting: wanted, in: directory, numbering: numbering),
            earlier.size == item.size
        {
            try directory.remove(part.name)
            return earlier.name
        }
        let names = NumberedNames(directory: directory, wanted: wanted, numbering: numbering)
        var lost = 0
        for _ in 0..<Self.raceLimit {
            guard let free = names.free(above: lost) else { break }
            let name = names.name(free)
            if try Self.give(name, to: part) { return name }
            // Another process took the name first.
            lost = free
        }
        // A problem of the directory that may be temporary.
        throw TransferError(
            .io, "all names like \(directory.path(of: wanted)) are taken", systemError: EEXIST)
    }

    /// Renames the part file to a free name.
    ///
    /// - Returns: `false` if the name is taken.
    private static func give(_ name: String, to part: PartFile) throws(TransferError) -> Bool {
        let error = renameWithoutReplacing(part.name, to: name, in: part.directory)
        if error == 0 { return true }
        guard error == EEXIST else { throw refusal(error, part, name) }
        return false
    }

    private static func refusal(_ error: Int32, _ part: PartFile, _ name: String) -> TransferError {
        let deed = "rename the file to \(name)"
        guard error == EINVAL else { return part.directory.refusal(error, doing: deed, of: part.name, name) }
        return .naming(error, doing: deed)
    }

    /// - Returns: 0 or the `errno`.
    private static func renameWithoutReplacing(_ old: String, to new: String, in directory: Directory) -> Int32 {
        let descriptor = directory.descriptor.raw
        if linux_rename_noreplace(descriptor, old, descriptor, new) == 0 { return 0 }
        let error = errno
        guard error == EINVAL || error == ENOSYS else { return error }
        // Some file systems do not support renaming without replacing. A second hard link and the removal of the first
        // name are equivalent.
        guard linkat(descriptor, old, descriptor, new, 0) == 0 else {
            let refusal = errno
            let isLocked = linux_locked(descriptor, old) != 0 || linux_locked(descriptor, "") != 0
            // If the file system does not support hard links, its first error means that it rejects the name (FAT: a
            // colon, a question mark).
            let hasNoLinks = [EPERM, EOPNOTSUPP, ENOSYS].contains(refusal) && !isLocked
            return hasNoLinks ? error : refusal
        }
        return unlinkat(descriptor, old, 0) == 0 ? 0 : errno
    }

    /// - Returns: the errors of the directories whose entries may not be on the disk.
    private func synchronize(_ directories: [Directory]) -> [ObjectIdentifier: TransferError] {
        var failures: [ObjectIdentifier: TransferError] = [:]
        // Each run opens the directory itself; those with the same inode need only one sync.
        var done: [Inode: TransferError?] = [:]
        for directory in directories {
            if let known = done[directory.inode] {
                failures[ObjectIdentifier(directory)] = known
                continue
            }
            var failure: TransferError?
            do throws(TransferError) { try directory.synchronize() } catch { failure = error }
            done[directory.inode] = .some(failure)
            failures[ObjectIdentifier(directory)] = failure
        }
        return failures
    }
}
