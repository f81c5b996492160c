import Glibc

/// A TCP connection whose close(2) takes as long as a client chooses: its peer reads nothing, and SO_LINGER sets how
/// long close(2) waits (socket(7)).
final class LingeringSocket: Sendable {
    let descriptor: Int32
    private let others: [Int32]

    init(seconds: Int32) throws {
        func check(_ result: Int32, _ call: String) throws -> Int32 {
            guard result >= 0 else { throw TestClient.Failure(call: call, errno: errno) }
            return result
        }
        let listener = try check(socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket")
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        descriptor = try check(socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket")
        let copy = descriptor
        let accepted = try withUnsafeMutablePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = try check(bind(listener, address, length), "bind")
                _ = try check(listen(listener, 1), "listen")
                _ = try check(getsockname(listener, address, &length), "getsockname")
                _ = try check(connect(copy, address, length), "connect")
                return try check(accept(listener, nil, nil), "accept")
            }
        }
        others = [listener, accepted]
        let bytes = [UInt8](repeating: 0, count: 65_536)
        while send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)) > 0 {}
        var option = linger(l_onoff: 1, l_linger: seconds)
        let size = socklen_t(MemoryLayout<linger>.size)
        _ = try check(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, size), "setsockopt")
    }

    /// Closes the local descriptor, so that the receiver of the socket holds the only reference.
    func giveUp() { close(descriptor) }

    deinit { for other in others { close(other) } }
}
