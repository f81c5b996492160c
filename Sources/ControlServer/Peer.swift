import CLinux
import Glibc
import TaskQueue

/// Who is at the other end of a connection, as the kernel says it (SO_PEERCRED, unix(7)): the credentials of the
/// process at the moment that it connected, whatever it has become since.
package struct Peer: Sendable, Hashable {
    package let uid: UInt32
    package let gid: UInt32
    /// May have been given to another process since; good for a log line and for nothing else.
    package let pid: Int32
    /// The primary group, and the supplementary ones where the kernel tells them.
    package let groups: [UInt32]
    /// The open files that it passed on this connection.
    package let files = ReceivedFiles()

    package init(uid: UInt32, gid: UInt32, pid: Int32, supplementaryGroups: [UInt32] = []) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
        groups = [gid] + supplementaryGroups.filter { $0 != gid }
    }

    /// - Returns: `nil` where `descriptor` is not a connected Unix socket.
    init?(ofSocket descriptor: Int32) {
        // `struct ucred` is three words of 32 bits, pid, uid and gid; Glibc's module does not show it.
        var words: [UInt32] = [0, .max, .max]
        let expected = socklen_t(words.count * MemoryLayout<UInt32>.size)
        var length = expected
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &words, &length) == 0, length == expected,
            words[0] != 0, words[1] != .max
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

    /// A process is in no more (credentials(7), NGROUPS_MAX).
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
