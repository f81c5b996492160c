import TaskFiles
import TaskModel
import Testing

@Suite("URL lists")
struct URLListTests {
    @Test("blank lines, comments, white space, a byte order mark and CR LF change nothing")
    func tolerated() throws {
        let text = "\u{FEFF}http://h/a\r\n\r\n# no\n  \t\n  # nor this\n\thttps://h/b?c#d  \r\n\nftp://h/c"
        let list = try URLList(parsing: text, file: "f")
        #expect(list.entries.map(\.specification.url) == ["http://h/a", "https://h/b?c#d", "ftp://h/c"])
        #expect(list.entries.map(\.line) == [1, 6, 8])
        #expect(list.entries.map(\.column) == [1, 2, 1])
    }

    @Test("a file that says nothing asks for nothing", arguments: ["", "\n\n", "# a\r\n", "\u{FEFF}"])
    func nothing(text: String) throws {
        #expect(try URLList(parsing: text, file: "f").entries.isEmpty)
    }

    @Test("every line that is not a URL is refused with its place, of more than twenty the first")
    func refused() {
        let wrong = #expect(throws: FileError.self) {
            try URLList(parsing: "http://h/a\r\n\r\n  h/b\r\nnor this", file: "f")
        }
        #expect(wrong?.lines.first == "f:3:3: \"url\": has no scheme; begin it with https:// or http://")
        #expect(wrong?.lines.count == 2 && wrong?.lines.last?.hasPrefix("f:4:1: \"url\": ") == true)
        let many = #expect(throws: FileError.self) {
            try URLList(parsing: String(repeating: "nonsense\n", count: 25), file: "f")
        }
        #expect(many?.lines.count == 21 && many?.lines.last == "and 5 more")
        let error = #expect(throws: FileError.self) { try URLList(parsing: "file:///etc/passwd", file: "f") }
        #expect(error?.code == .protocolNotAllowed)
        #expect(error?.message.contains("protocol file is not allowed") == true)
    }

    @Test(
        "bytes that no URL holds are refused",
        arguments: [
            Array("http://a b/".utf8), Array("http://h/\0".utf8), Array("http://h/a\rhttp://h/b".utf8),
            Array("http://h/".utf8) + [0xFF], [0], [0x1F, 0x8B, 8, 0],
        ])
    func badBytes(bytes: [UInt8]) {
        #expect(throws: FileError.self) { try URLList(parsing: bytes, file: "f") }
    }

    @Test("a list of 100,000 URLs is read")
    func long() throws {
        let text = (0..<100_000).map { "http://h/\($0)\n" }.joined()
        let entries = try URLList(parsing: text, file: "f").entries
        #expect(entries.count == 100_000)
        #expect(entries.last?.specification.url == "http://h/99999")
        #expect(entries.last?.line == 100_000)
    }

    @Test("a list with too many URLs is refused at the first too many")
    func tooLong() throws {
        let bytes = Array("ftp://h\n\n# c\nftp://i\n ftp://j\n".utf8)
        #expect(try URLList(parsing: bytes, file: "f", limit: 3).entries.count == 3)
        #expect(throws: fault(5, 2, "exceeds the limit of 2 URLs per file")) {
            try URLList(parsing: bytes, file: "f", limit: 2)
        }
    }
}
