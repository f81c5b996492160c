import Testing

@testable import Curl

@Suite("Easy handles and header lists")
struct EasyHandleTests {
    @Test("a value with a NUL is refused, since libcurl would read less than we mean")
    func nulInOption() throws {
        let handle = try EasyHandle()
        #expect(throws: CurlError.self) { try handle.set(.url, to: "http://example.org/\0.evil") }
        #expect(throws: CurlError.self) { try handle.set(.password, to: "a\0b") }
        try handle.set(.url, to: "http://example.org/")
    }

    @Test(
        "A7: a header line with a NUL or a line end is refused: it would be another line than we mean",
        arguments: ["A: b\0c", "A: b\r\nC: d", "A: b\nC: d", "A: b\rc", "A\0: b"])
    func controlCharactersInHeader(line: String) throws {
        var list = HeaderList()
        #expect(throws: CurlError.self) { try list.append(line) }
        let isEmpty = list.isEmpty
        #expect(isEmpty)
    }

    @Test("a header line may hold a tab and letters of any language")
    func harmlessHeader() throws {
        let list = try HeaderList(["A: b\tc", "B: naïve"])
        let isEmpty = list.isEmpty
        #expect(!isEmpty)
    }

    @Test("an option that libcurl does not take is an error, not silence")
    func refusedOption() throws {
        let handle = try EasyHandle()
        #expect(throws: CurlError.self) { try handle.set(.protocols, to: "no-such-protocol") }
        #expect(throws: CurlError.self) { try handle.set(.httpVersion, to: 999) }
    }

    @Test("the library says which version it is, and errors say what they mean")
    func words() {
        #expect(CurlLibrary.version.hasPrefix("libcurl/"))
        #expect(CurlLibrary.version.contains("."))
    }
}
