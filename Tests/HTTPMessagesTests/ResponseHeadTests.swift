import HTTPTypes
import TestSupport
import Testing

@testable import HTTPMessages

@Suite("Heads of answers")
struct ResponseHeadTests {
    /// Feeds lines until a head is complete.
    private func parse(_ lines: [String]) -> ResponseHeadParser.Progress {
        var parser = ResponseHeadParser()
        for line in lines {
            let progress = Array(line.utf8).withUnsafeBytes { parser.add($0) }
            if case .incomplete = progress { continue }
            return progress
        }
        return .incomplete
    }

    private func whole(_ lines: [String]) -> ResponseHead? {
        if case .complete(let head) = parse(lines) { return head }
        return nil
    }

    @Test("a name that is known at run time finds the same values as a literal")
    func runtimeName() throws {
        let head = try #require(whole(["HTTP/1.1 200 OK\r\n", "X-A: 1\r\n", "x-a: 2\r\n", ": 3\r\n", "\r\n"]))
        for name in ["X-A", "x-a"] { #expect(head.value(of: name) == "1") }
        for name in ["", "X", "X-A:", "X-A: 1", "X-A\n", "X-B"] { #expect(head.value(of: name) == nil) }
        #expect(head.value(of: "x-a") == "1")
    }

    @Test("the reason phrase is text without its line ending, and may be missing")
    func reason() throws {
        #expect(try #require(whole(["HTTP/1.1 404 Not Found\r\n", "\r\n"])).reason == "Not Found")
        #expect(try #require(whole(["HTTP/1.1 200 OK\n", "\n"])).reason == "OK")
        #expect(try #require(whole(["HTTP/1.1 200 \r\n", "\r\n"])).reason == "")
        #expect(try #require(whole(["HTTP/2 200\r\n", "\r\n"])).reason == "")
        #expect(try #require(whole(["HTTP/1.1 302 Moved\r\n", "\r\n"])).removing(["date"]).reason == "Moved")
    }

    @Test("a head made of fields is read like one from a server")
    func madeOfFields() {
        let head = ResponseHead(
            status: 206, reason: "Partial Content",
            fields: [.contentLength: "12", .eTag: "\"a\"", .contentType: "text/plain; charset=UTF-8"])
        #expect(head.status == 206)
        #expect(head.reason == "Partial Content")
        #expect(head.version == "1.1")
        #expect(head.contentLength == 12)
        #expect(head.charset == "utf-8")
        #expect(head.validator.entityTag == "\"a\"")
        #expect(head.headerFields[.contentType] == "text/plain; charset=UTF-8")

        var fields = HTTPFields()
        fields.append(HTTPField(name: .setCookie, value: "a=1"))
        fields.append(HTTPField(name: .setCookie, value: "b=2"))
        #expect(ResponseHead(status: 200, fields: fields).values(of: "set-cookie") == ["a=1", "b=2"])
        #expect(ResponseHead(status: 200).headerFields.isEmpty)
    }

    @Test("status, version and fields; names in any case, the first value counts")
    func fields() throws {
        let head = try #require(
            whole(["HTTP/1.1 200 OK\r\n", "Content-LENGTH:  12 \t\r\n", "etag:\"a\"\r\n", "ETag: \"b\"\r\n", "\r\n"]))
        #expect(head.status == 200)
        #expect(head.version == "1.1")
        #expect(head.contentLength == 12)
        #expect(head.value(of: "etag") == "\"a\"")
        #expect(head.value(of: "content") == nil)
        #expect(head.headerFields.count == 3)
    }

    @Test("informational answers are passed over, and nothing of theirs stays")
    func informational() throws {
        let head = try #require(
            whole([
                "HTTP/1.1 100 Continue\r\n", "\r\n", "HTTP/1.1 103 Early Hints\r\n", "ETag: \"early\"\r\n", "\r\n",
                "HTTP/2 404 \r\n", "Content-Length: 0\r\n", "\r\n",
            ]))
        #expect(head.status == 404)
        #expect(head.version == "2")
        #expect(head.value(of: "etag") == nil)
    }

    @Test("informational answers without end are refused")
    func manyHeads() {
        let lines = [["HTTP/1.1 100 Continue\r\n", "\r\n"]].flatMap { $0 }
        guard case .tooLong = parse(Array(repeating: lines, count: 100).flatMap { $0 }) else {
            Issue.record("a hundred heads were taken")
            return
        }
        let few = Array(repeating: lines, count: 31).flatMap { $0 } + ["HTTP/1.1 200 OK\r\n", "\r\n"]
        #expect(whole(few)?.status == 200)
    }

    @Test("a head that is too long is refused, whether in one line or in many")
    func tooLong() {
        for lines in [
            ["A: " + String(repeating: "x", count: 300_000) + "\r\n"],
            Array(repeating: "A: " + String(repeating: "x", count: 1000) + "\r\n", count: 300),
        ] {
            guard case .tooLong = parse(["HTTP/1.1 200 OK\r\n"] + lines + ["\r\n"]) else {
                Issue.record("a head of 300 kB was taken")
                continue
            }
        }
    }

    @Test("folded lines, lines without a colon and bytes of no encoding harm nothing")
    func garbage() throws {
        var parser = ResponseHeadParser()
        let lines: [[UInt8]] = [
            Array("HTTP/1.1 200 OK\r\n".utf8), Array("A: b\r\n".utf8), Array("\t content-length: 7\r\n".utf8),
            Array("no colon\r\n".utf8), [0xFF, 0x3A, 0xFE, 0x0D, 0x0A], Array(": nameless\r\n".utf8),
            Array("Content-Length: 9".utf8), Array("\n".utf8),
        ]
        var found: ResponseHead?
        for line in lines {
            if case .complete(let head) = line.withUnsafeBytes({ parser.add($0) }) { found = head }
        }
        let head = try #require(found)
        #expect(head.contentLength == 9)
        #expect(head.value(of: "a") == "b")
        _ = head.headerFields
    }

    @Test(
        "status lines of no sense bring no head",
        arguments: ["HTTP/1.1\r\n", "HTTP/1.1 abc\r\n", "HTTP/\r\n", "HTTP/1.1 99 x\r\n"])
    func badStatus(line: String) {
        #expect(whole([line, "\r\n"]) == nil)
    }

    @Test(
        "Retry-After as seconds or as a date; garbage is none",
        arguments: [
            ("0", 0), ("120", 120), ("Thu, 01 Jan 1970 00:02:00 GMT", 20), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("-5", nil), ("+5", nil), ("soon", nil), ("", nil), ("1.5", 2), ("1.x", nil), (".5", nil),
            ("99999999999999999999999", .max),
        ] as [(String, Int64?)])
    func retryAfter(text: String, seconds: Int64?) {
        #expect(head(503, ["Retry-After: \(text)"]).retryAfter(now: 100) == seconds)
    }

    @Test("a name that differs by more than letter case is another", arguments: ["\r", "\u{0}", "\u{C}"])
    func otherNames(byte: String) {
        #expect(head(200, ["Content\(byte)Length: 5"]).contentLength == nil)
    }

    @Test("a coding is one unless it is identity")
    func coding() {
        #expect(head(200, ["Content-Encoding: GZIP"]).contentCoding == "gzip")
        #expect(head(200, ["Content-Encoding: identity"]).contentCoding == nil)
        #expect(head(200).contentCoding == nil)
        #expect(head(200, ["Content-Encoding: identity, identity"]).contentCoding == nil)
        #expect(
            head(200, ["Content-Encoding: GZip ,, identity", "Content-Encoding: br"]).contentCodings == ["gzip", "br"])
        #expect(head(200, ["Content-Type: Text/HTML ; charset=x"]).mediaType == "text/html")
        #expect(head(200, ["Content-Type:"]).mediaType == nil && head(200).mediaType == nil)
        #expect(head(200, ["Content-Type: \(String(repeating: "a", count: 256))"]).mediaType == nil)
    }

    @Test("a status line may have several spaces between its words")
    func spaces() {
        let head = whole(["HTTP/1.1   204   No  Content\r\n", "\r\n"])
        #expect(head?.status == 204 && head?.version == "1.1" && head?.reason == "No  Content")
    }

    @Test(
        "a length is digits alone, within 64 bits",
        arguments: [
            ("5", 5), (" 5 ", 5), ("\t005\r", 5), ("9223372036854775807", Int64.max), ("9223372036854775808", nil),
            ("", nil), ("+5", nil), ("-5", nil), ("5 6", nil), ("5,5", nil),
            ("0x5", nil), ("５", nil),
        ])
    func lengths(text: String, length: Int64?) {
        #expect(head(200, ["Content-Length:\(text)"]).contentLength == length)
    }

    @Test("of several lengths all are the same, and none counts beside chunks")
    func severalLengths() {
        #expect(head(200, ["Content-Length: 5", "Content-Length: 5"]).contentLength == 5)
        let other = head(200, ["Content-Length: 5", "Content-Length: 6"])
        #expect(other.contentLength == nil && other.hasInvalidContentLength)
        let chunked = head(200, ["Content-Length: x", "Transfer-Encoding: gzip, Chunked"])
        #expect(chunked.contentLength == nil && !chunked.hasInvalidContentLength)
        #expect(head(200, ["Content-Length: 5", "Transfer-Encoding: gzip"]).contentLength == 5)
    }

    @Test("a field is found in any line, the last one and one without a line feed too")
    func anyLine() {
        let head = head(200, ["A: 1", "", ":", "AB: 2", "b: 3"])
        #expect(head.value(of: "a") == "1" && head.value(of: "ab") == "2" && head.value(of: "B") == "3")
        #expect(head.value(of: "c") == nil)
    }
}
