import Glibc
import Synchronization

/// Keeps other processes off a part file while one is at work on it: a lock of flock(2), which the kernel lets go of when
/// the process ends, however it ends.
///
/// Two daemons whose state directories are copies of each other call their parts alike. Within one process the runs of a
/// part share its lock: the last user of an earlier run may be there still when the next one begins.
final class PartLock: Sendable {
    /// The lock is on what this has open.
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
            // Another may have taken it meanwhile.
            if held[inode]?.lock == nil { held[inode] = nil }
        }
    }

    /// - Parameter path: of the part, for messages.
    /// - Returns: `nil` where the file system knows no locks.
    /// - Throws: `partInUse` where another process has it.
    static func take(_ descriptor: FileDescriptorOwner, _ inode: Inode, path: String) throws(TransferError) -> PartLock?
    {
        if let own = held.withLock({ $0[inode]?.lock }) { return own }
        guard flock(descriptor.raw, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { return nil }
            // One of ours that is just being let go of, or another process.
            if let own = held.withLock({ $0[inode]?.lock }) { return own }
            let holder = holder(of: inode)
            if holder == getpid() { return nil }
            let who = holder.map { "process \($0)" } ?? "another process"
            throw TransferError(
                .partInUse,
                "\(who) is at work on \(path): is it another daemon, on a copy of this one's state directory?")
        }
        let lock = PartLock(descriptor, inode)
        held.withLock { $0[inode] = Held(lock: lock) }
        return lock
    }

    /// Makes sure that no other process is at work on the part of this name, where there is one.
    ///
    /// - Throws: `partInUse`.
    static func checkFree(_ name: String, in directory: Directory) throws(TransferError) {
        guard let (descriptor, status) = directory.open(reading: name), status.st_mode & S_IFMT == S_IFREG else {
            return
        }
        let inode = Inode(status)
        // Given up again with the descriptor, unless a run of this process has it.
        _ = try take(descriptor, inode, path: directory.path(of: name))
    }

    /// The process that has the lock, as far as the kernel tells: proc_locks(5).
    private static func holder(of inode: Inode) -> pid_t? {
        guard let text = ProcessFile.read(path: "/proc/locks") else { return nil }
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            // 1: FLOCK  ADVISORY  WRITE 708 08:01:123456 0 EOF; one that waits has an arrow behind the number.
            let words = line.split(separator: UInt8(ascii: " ")).map { String(Substring($0)) }
            guard words.count >= 6, words[1] == "FLOCK", let process = pid_t(words[4]), process > 0 else { continue }
            if words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == inode.number { return process }
        }
        return nil
    }
}
