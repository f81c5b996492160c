import CCurl

#if canImport(Glibc)
import Glibc
#endif

extension StreamConnection {
    /// Whether the kernel would now choose another source address for a connection to the same address.
    ///
    /// A TCP connection keeps its source address. When the machine's routes or addresses change, a new connection might
    /// take another route, and an old one might be cut off.
    package func hasBetterRoute() -> Bool {
        guard let socket = easy.socket() else { return false }
        return sourceAddressIsOutdated(of: socket)
    }
}

/// Whether the socket's source address is outdated. The kernel is queried by connecting a datagram socket, which sends
/// nothing.
func sourceAddressIsOutdated(of socket: Int32) -> Bool {
    guard let peer = SocketAddress(peerOf: socket), let source = SocketAddress(sourceOf: socket) else { return false }
    let probe = Glibc.socket(peer.family, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard probe >= 0 else { return false }
    defer { _ = close(probe) }  // a datagram socket that sent nothing
    // Without any route there is no better one.
    guard peer.connect(probe) == 0, let now = SocketAddress(sourceOf: probe) else { return false }
    return now.host != source.host
}

/// A socket address of the system.
private struct SocketAddress {
    private var storage = sockaddr_storage()
    private var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

    init?(peerOf socket: Int32) {
        guard fill({ getpeername(socket, $0, $1) }) == 0 else { return nil }
    }

    init?(sourceOf socket: Int32) {
        guard fill({ getsockname(socket, $0, $1) }) == 0 else { return nil }
    }

    private mutating func fill(
        _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Int32 {
        var size = length
        defer { length = size }
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, &size) }
        }
    }

    var family: Int32 { Int32(storage.ss_family) }

    /// The address without its port.
    var host: [UInt8] {
        withUnsafeBytes(of: storage) { bytes in
            switch family {
            case AF_INET: Array(bytes[4..<8])
            case AF_INET6: Array(bytes[8..<24])
            default: []
            }
        }
    }

    func connect(_ socket: Int32) -> Int32 {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(socket, $0, length) }
        }
    }
}
