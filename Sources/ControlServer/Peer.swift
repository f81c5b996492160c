import Glibc

/// Who is at the other end of a connection, as the kernel says it (SO_PEERCRED, unix(7)): the credentials of the
/// process at the moment that it connected, whatever it has become since.
package struct Peer: Sendable, Hashable {
    package let uid: UInt32
    package let gid: UInt32
    /// May have been given to another process since; good for a log line and for nothing else.
    package let pid: Int32

    package init(uid: UInt32, gid: UInt32, pid: Int32) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
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
        pid = Int32(bitPattern: words[0])
        uid = words[1]
        gid = words[2]
    }
}
