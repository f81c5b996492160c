import CLinux
import Glibc

/// The identity of a socket that libcurl used, distinct from that of a later socket with the same descriptor.
struct SocketIdentity: Equatable {
    let descriptor: Int32
    private let cookie: UInt64

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        cookie = linux_socket_cookie(descriptor)
    }

    /// Whether the descriptor is still that of the socket.
    var isOpen: Bool { cookie != 0 && linux_socket_cookie(descriptor) == cookie }

    /// The number of bytes that the peer has acknowledged; `nil` if the socket is no longer open or the kernel does not
    /// report it.
    var acknowledged: UInt64? {
        guard isOpen else { return nil }
        let count = linux_tcp_acknowledged(descriptor)
        return count > 0 ? count : nil
    }

    /// The number of bytes received; `nil` if the socket is no longer open or the kernel does not report it.
    var received: UInt64? {
        guard isOpen else { return nil }
        let count = linux_tcp_received(descriptor)
        return count > 0 ? count : nil
    }

    /// The number of bytes received and read; `nil` as for ``received``.
    var taken: UInt64? {
        guard let received else { return nil }
        let unread = linux_tcp_unread(descriptor)
        return received >= unread ? received - unread : 0
    }

    /// Whether the socket is still open and has bytes, an end of stream or an error to be read.
    var hasInput: Bool {
        guard isOpen else { return false }
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLNVAL) == 0
    }
}

/// The sockets of a loop's connections by their addresses. libcurl 7.88 tells the addresses of the connection that a
/// request is about to be sent on, and its socket only after the request.
struct ConnectionSockets {
    /// The addresses of a connection's two ends.
    struct Ends: Hashable {
        let local: String
        let localPort: Int32
        let peer: String
        let peerPort: Int32
    }

    /// The number of sockets from which on those of closed connections are removed.
    private static let limit = 1_024
    private var sockets: [Ends: SocketIdentity] = [:]

    subscript(ends: Ends) -> SocketIdentity? { sockets[ends] }

    /// Records a new connection, in place of an earlier one between the same ends.
    mutating func record(_ socket: SocketIdentity, between ends: Ends) {
        if sockets.count >= Self.limit { sockets = sockets.filter(\.value.isOpen) }
        sockets[ends] = socket
    }
}
