import Glibc

/// A pair of connected, non-blocking stream sockets (socketpair(2)).
enum SocketPair {
    /// - Returns: both ends, which the caller closes; `nil` if the system call fails, with `errno` as that sets it.
    static func make() -> (Int32, Int32)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        return socketpair(AF_UNIX, type, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
    }
}
