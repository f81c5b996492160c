import Testing

@testable import Transfer

@Suite("Networks of addresses")
struct IPNetworkTests {
    private static let loopback = IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)
    private static let loopback6 = IPNetwork(ipv6: 1, prefixLength: 128)
    private static let inner = IPNetwork(ipv4: 0x0A00_0000, prefixLength: 8)

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(host: text)) }

    @Test(
        "A11: addresses that stand for one of a denied network are denied, however they are written",
        arguments: [
            "127.0.0.1", "127.255.255.255", "[::ffff:127.0.0.1]", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::", "2002:7f00:1::",
            "2002:7f00:1:2:3:4:5:6", "0.0.0.0", "::", "::ffff:0.0.0.0", "64:ff9b::", "127.0.0.1.",
            "127.1", "127.0.1.", "2130706433", "0x7f.1", "0X7F000001.", "0177.0.0.1", "017700000001.", "0x7f.0x.0.01",
            "１２７.０．0。1", "127.٠.0.1",
        ])
    func denied(text: String) throws {
        #expect(Self.loopback.isReached(by: try address(text)))
        #expect(!Self.inner.isReached(by: try address(text)))
    }

    @Test(
        "A11: and no others",
        arguments: [
            "126.255.255.255", "128.0.0.0", "::1", "::7e00:1", "1::7f00:1", "64:ff9b:2::7f00:1", "2003:7f00:1::",
            "2001:db8::127.0.0.1", "::fffe:127.0.0.1",
        ])
    func allowed(text: String) throws {
        #expect(!Self.loopback.isReached(by: try address(text)))
    }

    @Test(
        "A11: a name is no address",
        arguments: [
            "", ".", "a", "0x7g.1", "127.0.0.1.2", "127.0.0.256", "127.256.1.1", "4294967296", "08.1", "127..1",
            "+127.1",
            "127.1..", "127.0.0.1 x", "example.org", "1.2.3.4.example", "二.example",
        ])
    func namesAlone(text: String) {
        #expect(IPAddress(host: text) == nil)
    }

    @Test("A11: the unspecified addresses count as both of the local host's")
    func unspecified() throws {
        for text in ["::", "0.0.0.0", "::1"] { #expect(Self.loopback6.isReached(by: try address(text))) }
        #expect(!Self.loopback6.isReached(by: try address("127.0.0.1")))
    }

    @Test("A11: a network of IPv6 denies its own addresses, and none of IPv4")
    func families() throws {
        let all = IPNetwork(ipv6: 0, prefixLength: 0)
        for text in ["::", "::1", "fd00::1", "ffff::", "::ffff:10.0.0.1"] {
            #expect(all.isReached(by: try address(text)))
        }
        let all4 = IPNetwork(ipv4: 0, prefixLength: 0)
        let (four, six) = (try address("10.0.0.1"), try address("fd00:ec2::254"))
        #expect(!all.isReached(by: four) && all4.isReached(by: four) && !all4.isReached(by: six))
        let local = IPNetwork(ipv6: 0xFD << 120, prefixLength: 8)
        let other = try address("fc00::1")
        #expect(local.isReached(by: six) && !local.isReached(by: other))
    }

    @Test("prefixes end at the bit that they name, and too long ones at the last")
    func prefixes() throws {
        let network = IPNetwork(ipv4: 0xC0A8_0180, prefixLength: 25)
        #expect(network.description == "192.168.1.128/25")
        let (last, before) = (try address("192.168.1.255"), try address("192.168.1.127"))
        #expect(network.isReached(by: last) && !network.isReached(by: before))
        #expect(IPNetwork(ipv4: 0xFFFF_FFFF, prefixLength: 99).description == "255.255.255.255/32")
        #expect(IPNetwork(ipv6: .max, prefixLength: -1).description == "::/0")
        #expect(IPNetwork(ipv6: .max, prefixLength: 127).description == "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127")
        #expect(IPNetwork(ipv4: 0x7F00_0001, prefixLength: 8) == Self.loopback)
    }

    @Test("names are no addresses", arguments: ["localhost", "", ".", "[", "[]", "1.2.3.4.5", "12::3::4"])
    func names(text: String) {
        #expect(IPAddress(host: text) == nil)
    }
}
