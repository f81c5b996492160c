import Testing

@testable import Transfer

@Suite("Values by host")
struct HostTableTests {
    private let table = HostTable([
        "Example.org": 1, "example.org:8080": 2, "*.example.org": 3, "*.deep.example.org.": 4, "[::1]": 5,
        "[::1]:81": 6, "*.org": 7, "root.test.": 8, "root.test.:81": 9,
    ])

    @Test(
        "the most specific entry counts: with the port, the name, the longest wildcard",
        arguments: [
            ("example.org", 80, 1), ("EXAMPLE.ORG", 443, 1), ("example.org", 8080, 2), ("example.org.", 8080, 2),
            ("a.example.org", 8080, 3), ("a.b.example.org", 80, 3), ("a.deep.example.org", 80, 4),
            ("deep.example.org", 80, 3), ("other.org", 80, 7), ("org", 80, nil), ("example.com", 80, nil),
            ("xexample.org", 80, 7), ("[::1]", 80, 5), ("[::1]", 81, 6), ("[::2]", 80, nil), ("root.test", 80, 8),
            ("[::1%25lo]", 80, 5), ("[::1%25lo]", 81, 6), ("[::2%25lo]", 80, nil),
            ("root.test.", 81, 9), ("", 80, nil), (".", 80, nil),
        ])
    func lookUp(host: String, port: Int, value: Int?) {
        #expect(table.value(forHost: host, port: port) == value)
        #expect(table.value(forOrigin: "https://\(host):\(port)") == value)
    }

    @Test("all entries that match are listed, the most specific first")
    func all() {
        #expect(table.values(forHost: "a.deep.example.org", port: 80) == [4, 3, 7])
        #expect(table.values(forHost: "EXAMPLE.org.", port: 8080) == [2, 1, 7])
        #expect(table.values(forHost: "[::1]", port: 81) == [6, 5])
        #expect(table.values(forHost: "example.com", port: 80) == [])
    }

    @Test("what is no origin has no value")
    func origins() {
        for text in ["", "a", "example.org", "http://example.org", "example.org:80", "http://example.org:x"] {
            #expect(table.value(forOrigin: text) == nil)
        }
        #expect(HostTable<Int>().isEmpty && HostTable<Int>().value(forHost: "a", port: 1) == nil)
    }
}
