import FoundationEssentials
import HTTPTypes
import StubTransport
import Testing
import Transfer

@Suite("Responses of a stub in short")
struct StubResultTests {
    private func response(_ result: StubResult) throws -> StubbedResponse {
        guard case .response(let response) = result else {
            throw TransferError(.internal, "no response")
        }
        return response
    }

    @Test("the length and the type of a body are fields, unless the caller sets them")
    func fields() throws {
        let json = try response(.json("[]", status: 201))
        #expect(json.head.status == 201)
        #expect(json.head.headerFields[.contentType] == "application/json")
        #expect(json.head.contentLength == 2)
        let own = try response(.data([1], type: "a/b", fields: [.contentType: "c/d", .contentLength: "9"]))
        #expect(own.head.headerFields[.contentType] == "c/d")
        #expect(own.head.contentLength == 9)
        let chunked = try response(.data([1], fields: [.transferEncoding: "chunked"]))
        #expect(chunked.head.contentLength == nil)
    }

    private struct User: Encodable {
        var name = "Ada"
        var homePage = "https://a.example/"
    }

    @Test("a value is encoded as JSON, and a text is JSON already")
    func values() throws {
        let user = try response(.json([User()], status: 201, fields: [.eTag: "\"1\""]))
        #expect(String(decoding: user.body, as: UTF8.self) == #"[{"homePage":"https://a.example/","name":"Ada"}]"#)
        #expect(user.head.status == 201 && user.head.headerFields[.eTag] == "\"1\"")
        #expect(user.head.headerFields[.contentType] == "application/json")
        #expect(user.head.contentLength == Int64(user.body.count))
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let snake = try response(.json(User(), encoder: encoder))
        #expect(String(decoding: snake.body, as: UTF8.self).contains("home_page"))
        let dictionary = try response(.json(["a": 1]))
        #expect(dictionary.body == Array(#"{"a":1}"#.utf8))
        let text = "[]"
        #expect(try response(.json(text)).body == Array("[]".utf8))
    }

    @Test("a value that JSON cannot represent is a failure")
    func failedEncoding() {
        guard case .failure(let error) = StubResult.json(Double.infinity) else {
            Issue.record("an infinite number became JSON")
            return
        }
        #expect(error.code == .invalidRequest && error.underlying is EncodingError)
    }

    @Test("a changed result is delayed and breaks; results without a response stay")
    func changes() throws {
        let changed = try response(StubResult.text("hello").delayed(by: 5).broken(after: 2))
        #expect(changed.delay == 5)
        #expect(changed.body == Array("he".utf8))
        #expect(changed.failure?.code == .truncated)
        guard case .network = StubResult.network.delayed(by: 5).broken(after: 2) else {
            Issue.record("a result without a response has changed")
            return
        }
    }

    @Test(
        "a file is served whole or in part (RFC 9110, section 14)",
        arguments: [
            (nil, nil, 200, 0..<10), ("bytes=2-4", nil, 206, 2..<5), ("bytes=7-", nil, 206, 7..<10),
            ("bytes=-3", nil, 206, 7..<10), ("bytes=-30", nil, 206, 0..<10), ("bytes=8-99", nil, 206, 8..<10),
            ("bytes=10-", nil, 416, 0..<0), ("bytes=-0", nil, 416, 0..<0), ("bytes=4-2", nil, 200, 0..<10),
            ("bytes=0-1,3-4", nil, 200, 0..<10), ("lines=1-2", nil, 200, 0..<10),
            ("bytes=2-4", "\"1\"", 206, 2..<5), ("bytes=2-4", "\"2\"", 200, 0..<10),
        ] as [(String?, String?, Int, Range<Int>)])
    func file(range: String?, ifRange: String?, status: Int, bytes: Range<Int>) throws {
        let content = (0..<10).map { UInt8($0) }
        var request = SentRequest(url: "https://a.example/")
        request.headerFields[.range] = range
        request.headerFields[.ifRange] = ifRange
        let response = try response(.file(content, for: request))
        #expect(response.head.status == status)
        #expect(response.body == Array(content[bytes]))
        let stated = response.head.headerFields[.contentRange]
        switch status {
        case 206: #expect(stated == "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/10")
        case 416: #expect(stated == "bytes */10")
        default: #expect(stated == nil)
        }
    }

    @Test("a file that the client has is not sent again")
    func notModified() throws {
        var request = SentRequest(url: "https://a.example/")
        request.headerFields[.ifNoneMatch] = "\"1\""
        #expect(try response(.file([1], for: request)).head.status == 304)
    }
}
