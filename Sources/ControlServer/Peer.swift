import CLinux
import Glibc
package import TaskQueue

/// The credentials of the process at the other end of a connection, as the kernel reports them (SO_PEERCRED, unix(7)).
/// They are those of the moment at which the process connected, whatever has changed since.
package struct Peer: Sendable, Hashable {
    package let uid: UInt32
    package let gid: UInt32
    /// The process id; 0 for a process outside of this one's namespace, such as a client outside of the container. It may
    /// have been reused since, so it is suitable only for log messages.
    package let pid: Int32
    /// The primary group, and the supplementary groups if the kernel reports them.
    package let groups: [UInt32]
    /// The open files that the client passed on this connection.
    package let files = ReceivedFiles()
    /// The copy of the database that the client fetches on this connection.
    package let backup = HeldBackup()

    package init(uid: UInt32, gid: UInt32, pid: Int32, supplementaryGroups: [UInt32] = []) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
        groups = [gid] + supplementaryGroups.filter { $0 != gid }
    }

    /// - Returns: `nil` if `descriptor` is not a connected Unix socket.
    init?(ofSocket descriptor: Int32) {
        // `struct ucred` consists of three 32-bit words: pid, uid and gid. Glibc's Swift module does not export it.
        var words: [UInt32] = [0, .max, .max]
        let expected = socklen_t(words.count * MemoryLayout<UInt32>.size)
        var length = expected
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &words, &length) == 0, length == expected,
            words[1] != .max
        else { return nil }
        self.init(
            uid: words[1], gid: words[2], pid: Int32(bitPattern: words[0]),
            supplementaryGroups: Self.supplementaryGroups(ofSocket: descriptor))
    }

    package static func == (one: Peer, other: Peer) -> Bool {
        one.uid == other.uid && one.gid == other.gid && one.pid == other.pid && one.groups == other.groups
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(uid)
        hasher.combine(gid)
        hasher.combine(pid)
        hasher.combine(groups)
    }

    /// The most groups of a process (credentials(7), NGROUPS_MAX).
    private static let mostGroups = 65_536

    private static func supplementaryGroups(ofSocket descriptor: Int32) -> [UInt32] {
        var groups = [UInt32](repeating: 0, count: 64)
        var count = linux_peer_groups(descriptor, &groups, Int32(groups.count))
        if count < 0, errno == ERANGE {
            groups = [UInt32](repeating: 0, count: mostGroups)
            count = linux_peer_groups(descriptor, &groups, Int32(groups.count))
        }
        return Array(groups.prefix(Int(max(0, count))))
    }
}
