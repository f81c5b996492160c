import Glibc
import Synchronization

/// An exclusive lock on a part file against other processes. It is a flock(2) lock, which the kernel releases when the
/// process ends, however it ends.
///
/// Two daemons whose state directories are copies of each other use the same names for their part files. Within one
/// process the runs of a part file share the lock: an earlier run may still hold it when the next one starts.
final class PartLock: Sendable {
    /// The open descriptor that the lock belongs to.
    private let descriptor: FileDescriptorOwner
    private let inode: Inode

    private struct Held {
        weak var lock: PartLock?
    }

    private static let held = Mutex<[Inode: Held]>([:])

    private init(_ descriptor: FileDescriptorOwner, _ inode: Inode) {
        self.descriptor = descriptor
        self.inode = inode
    }

    deinit {
        let inode = inode
        Self.held.withLock { held in
            // Another lock may have been acquired meanwhile.
            if held[inode]?.lock == nil { held[inode] = nil }
        }
    }

    /// Acquires the lock, or returns the one that this process already holds.
    ///
    /// - Parameter path: the part's path, for messages.
    /// - Returns: `nil` if the file system does not support locks, or while this process is releasing the lock.
    /// - Throws: `partInUse` if another process holds the lock.
    static func acquire(_ descriptor: FileDescriptorOwner, _ inode: Inode, path: String) throws(TransferError)
        -> PartLock?
    {
        if let own = held.withLock({ $0[inode]?.lock }) { return own }
        guard flock(descriptor.raw, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { return nil }
            // The lock is held by another process, or is just being released in this one.
            if let own = held.withLock({ $0[inode]?.lock }) { return own }
            let holder = holder(of: inode)
            if holder == getpid() { return nil }
            let who = holder.map { "process \($0)" } ?? "another process"
            throw TransferError(
                .partInUse,
                "\(who) uses \(path): is it another daemon with a copy of this state directory?")
        }
        let lock = PartLock(descriptor, inode)
        held.withLock { $0[inode] = Held(lock: lock) }
        return lock
    }

    /// Validates that no other process uses the part file of this name, if there is one.
    ///
    /// - Returns: the type of the file that has the name (inode(7), `S_IFMT`); `nil` if there is none that can be opened.
    /// - Throws: `partInUse`.
    @discardableResult
    static func checkFree(_ name: String, in directory: Directory) throws(TransferError) -> mode_t? {
        guard let (descriptor, status) = directory.open(reading: name) else { return nil }
        let type = status.st_mode & S_IFMT
        guard type == S_IFREG else { return type }
        let inode = Inode(status)
        // The lock is released with the descriptor, unless a run of this process holds it.
        _ = try acquire(descriptor, inode, path: directory.path(of: name))
        return type
    }

    /// Returns the process that holds the lock, if the kernel reports it (proc_locks(5)).
    private static func holder(of inode: Inode) -> pid_t? {
        guard let text = ProcessFile.read(path: "/proc/locks") else { return nil }
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            // Format: "1: FLOCK  ADVISORY  WRITE 708 08:01:123456 0 EOF". A waiting lock has an arrow after the number.
            let words = line.split(separator: UInt8(ascii: " ")).map { String(Substring($0)) }
            guard words.count >= 6, words[1] == "FLOCK", let process = pid_t(words[4]), process > 0 else { continue }
            if words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == inode.number { return process }
        }
        return nil
    }
}
