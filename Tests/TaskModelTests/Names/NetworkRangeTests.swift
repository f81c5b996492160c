import TaskModel
import Testing

@Suite("Networks as people write them")
struct NetworkRangeTests {
    @Test(
        "A11: networks and single addresses are read",
        arguments: [
            ("127.0.0.0/8", NetworkRange.ipv4(0x7F00_0000, prefixLength: 8)),
            ("0.0.0.0/0", .ipv4(0, prefixLength: 0)),
            ("10.1.2.3", .ipv4(0x0A01_0203, prefixLength: 32)),
            ("169.254.169.254/32", .ipv4(0xA9FE_A9FE, prefixLength: 32)),
            ("::1", .ipv6(1, prefixLength: 128)),
            ("::/0", .ipv6(0, prefixLength: 0)),
            ("FD00::/8", .ipv6(0xFD << 120, prefixLength: 8)),
            ("64:ff9b::/96", .ipv6(0x0064_FF9B << 96, prefixLength: 96)),
        ])
    func networks(text: String, network: NetworkRange) throws {
        #expect(try NetworkRange(parsing: text) == network)
    }

    @Test(
        "A11: what would deny something else than it seems to is refused, with what may be meant",
        arguments: [
            ("10.0.0.1/8", "\"10.0.0.1/8\" has bits beyond its prefix; is it 10.0.0.0/8 or 10.0.0.1?"),
            ("fd00::1/8", "\"fd00::1/8\" has bits beyond its prefix; is it fd00::/8 or fd00::1?"),
            ("0.0.0.1/0", "\"0.0.0.1/0\" has bits beyond its prefix; is it 0.0.0.0/0 or 0.0.0.1?"),
            ("::ffff:10.0.0.0/104", "\"::ffff:10.0.0.0/104\" is an IPv4 network; write 10.0.0.0/8"),
            ("::ffff:0:0/96", "\"::ffff:0:0/96\" is an IPv4 network; write 0.0.0.0/0"),
            ("10.0.0.0/33", "\"10.0.0.0/33\" must end in a prefix length from /0 to /32"),
            ("::/129", "\"::/129\" must end in a prefix length from /0 to /128"),
        ])
    func doubtful(text: String, message: String) {
        #expect { try NetworkRange(parsing: text) } throws: { ($0 as? NetworkRange.Refusal)?.message == message }
    }

    @Test(
        "A11: what is no network is refused",
        arguments: [
            "", "/", "/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0.0/ 8", "10.0.0/8", "10/8",
            "010.0.0.0/8", "0x7f000001", "2130706433", "localhost", "*.example.org", "fe80::1%lo/64", "[::1]/128",
            "::1\0",
            "10.0.0.0\0/8", "10.0.0.0/255.0.0.0", "10.0.0.0/٨",
        ])
    func none(text: String) {
        #expect(throws: NetworkRange.Refusal.self) { try NetworkRange(parsing: text) }
    }
}
