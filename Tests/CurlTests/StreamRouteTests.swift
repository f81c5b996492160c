import Glibc
import TestSupport
import Testing

@testable import Curl

@Suite("Source addresses of connections")
struct StreamRouteTests {
    /// Connects to `port` on this machine from the address `source`.
    private func connect(to port: Int, from source: UInt32) throws -> StreamSocket {
        let socket = StreamSocket(adopting: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        func address(_ host: UInt32, _ port: Int) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = host.bigEndian
            return address
        }
        func call(_ address: sockaddr_in, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
            withUnsafePointer(to: address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        let descriptor = socket.descriptor
        #expect(call(address(source, 0)) { bind(descriptor, $0, $1) } == 0)
        #expect(call(address(0x7F00_0001, port)) { Glibc.connect(descriptor, $0, $1) } == 0)
        return socket
    }

    @Test("a connection from an address that the kernel would not take now has a better route; others have none")
    func outdated() throws {
        let peer = try TalkingPeer { _ = try $0.readToEnd() }
        let usual = try connect(to: peer.port, from: 0x7F00_0001)
        #expect(!sourceAddressIsOutdated(of: usual.descriptor))
        let other = try connect(to: peer.port, from: 0x7F00_0002)
        #expect(sourceAddressIsOutdated(of: other.descriptor))
        #expect(!sourceAddressIsOutdated(of: -1))
    }
}
