import CLinux
import Glibc

/// A socket that libcurl used, told from another one that was given the same descriptor later.
struct SocketIdentity: Equatable {
    let descriptor: Int32
    private let cookie: UInt64

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        cookie = linux_socket_cookie(descriptor)
    }

    /// Bytes that the peer has acknowledged; `nil` where the socket is not open any more or the kernel does not tell.
    var acknowledged: UInt64? {
        guard cookie != 0, linux_socket_cookie(descriptor) == cookie else { return nil }
        let count = linux_tcp_acknowledged(descriptor)
        return count > 0 ? count : nil
    }

    /// Bytes that have arrived; `nil` where the socket is not open any more or the kernel does not tell.
    var received: UInt64? {
        guard cookie != 0, linux_socket_cookie(descriptor) == cookie else { return nil }
        let count = linux_tcp_received(descriptor)
        return count > 0 ? count : nil
    }

    /// Bytes that have arrived and been read; `nil` as for ``received``.
    var taken: UInt64? {
        guard let received else { return nil }
        let unread = linux_tcp_unread(descriptor)
        return received >= unread ? received - unread : 0
    }

    /// Whether the socket is still open and has bytes, an end or an error to be read.
    var hasInput: Bool {
        guard cookie != 0, linux_socket_cookie(descriptor) == cookie else { return false }
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLNVAL) == 0
    }
}
