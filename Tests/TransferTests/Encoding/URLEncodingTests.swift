import HTTPTypes
import Testing

@testable import Transfer

@Suite("Parameters as a form or a query")
struct URLEncodingTests {
    private func query(
        _ parameters: Parameters, _ encoding: URLEncoding = URLEncoding(), url: String = "http://h/p"
    ) throws -> String {
        let encoded = try encoding.encode(TransferRequest(url: url), with: parameters)
        #expect(encoded.body == nil)
        #expect(encoded.request.headerFields[.contentType] == nil)
        return encoded.request.url
    }

    private func body(_ parameters: Parameters, _ encoding: URLEncoding = URLEncoding()) throws -> String {
        let encoded = try encoding.encode(TransferRequest(url: "http://h/p", method: .post), with: parameters)
        #expect(encoded.request.url == "http://h/p")
        return String(decoding: try #require(encoded.body), as: UTF8.self)
    }

    @Test(
        "every kind of value has its form, sorted by name",
        arguments: [
            (["b": 2, "a": 1, "C": -3], "C=-3&a=1&b=2"),
            (["s": "text", "d": 1.5, "t": true, "f": false, "n": nil], "d=1.5&f=0&n=&s=text&t=1"),
            (["big": 1e20, "small": 1e-300], "big=1e%2B20&small=1e-300"),
            (["a": [1, 2]], "a%5B%5D=1&a%5B%5D=2"),
            (["a": ["c": 2, "b": 1]], "a%5Bb%5D=1&a%5Bc%5D=2"),
            (["a": ["b": [["c": 1], [2]]]], "a%5Bb%5D%5B%5D%5Bc%5D=1&a%5Bb%5D%5B%5D%5B%5D=2"),
            (["a": [], "b": [:]], ""),
            ([:], ""),
            (["": ""], "="),
        ] as [(Parameters, String)])
    func values(parameters: Parameters, text: String) throws {
        #expect(try body(parameters) == text)
        #expect(try query(parameters) == "http://h/p" + (text.isEmpty ? "" : "?" + text))
    }

    @Test("arrays and booleans can be written otherwise")
    func variants() throws {
        let parameters: Parameters = ["a": [true, ["b": false]]]
        #expect(try body(parameters, URLEncoding(arrayEncoding: .noBrackets)) == "a=1&a%5Bb%5D=0")
        #expect(
            try body(parameters, URLEncoding(arrayEncoding: .indexInBrackets, boolEncoding: .literal))
                == "a%5B0%5D=true&a%5B1%5D%5Bb%5D=false")
    }

    @Test("all but the unreserved characters are escaped; a query keeps its slashes and question marks")
    func escapes() throws {
        let hard: Parameters = ["k&=": "aZ09-._~ +/?#&=%\"\r\n\u{0}é😀"]
        let rest = "%23%26%3D%25%22%0D%0A%00%C3%A9%F0%9F%98%80"
        #expect(try body(hard) == "k%26%3D=aZ09-._~%20%2B%2F%3F" + rest)
        #expect(try query(hard) == "http://h/p?k%26%3D=aZ09-._~%20%2B/?" + rest)
    }

    @Test(
        "a query that there is stands before, a fragment behind",
        arguments: [
            ("http://h", "http://h?a=1"), ("http://h/?", "http://h/?a=1"), ("http://h/?x", "http://h/?x&a=1"),
            ("http://h/?x=1&", "http://h/?x=1&a=1"), ("http://h/p#f", "http://h/p?a=1#f"),
            ("http://h/p?x#f?g#h", "http://h/p?x&a=1#f?g#h"), ("http://h/p#f?g", "http://h/p?a=1#f?g"),
            ("http://h/é?ü", "http://h/é?ü&a=1"), ("", "?a=1"),
        ])
    func queries(url: String, result: String) throws {
        #expect(try query(["a": 1], url: url) == result)
        #expect(try query([:], url: url) == url)
    }

    @Test(
        "the method says where parameters go, unless the encoding does",
        arguments: [
            (.get, true), (.head, true), (.delete, true), (.post, false), (.put, false), (.patch, false),
        ] as [(HTTPRequest.Method, Bool)])
    func destinations(method: HTTPRequest.Method, isQuery: Bool) throws {
        let request = TransferRequest(url: "http://h/", method: method)
        let found = try URLEncoding().encode(request, with: ["a": 1])
        #expect(found.request.url == (isQuery ? "http://h/?a=1" : "http://h/"))
        #expect(found.body == (isQuery ? nil : Array("a=1".utf8)))
        #expect(found.request.method == method)
        #expect(try URLEncoding(destination: .queryString).encode(request, with: ["a": 1]).body == nil)
        #expect(try URLEncoding(destination: .httpBody).encode(request, with: ["a": 1]).body == Array("a=1".utf8))
    }

    @Test("a body has its type, and one of the request's own stands")
    func contentType() throws {
        var request = TransferRequest(url: "http://h/", method: .post)
        let type = try URLEncoding().encode(request, with: [:]).request.headerFields[.contentType]
        #expect(type == "application/x-www-form-urlencoded; charset=utf-8")
        request.headerFields[.contentType] = "text/x-own"
        #expect(
            try URLEncoding().encode(request, with: [:]).request.headerFields[values: .contentType] == ["text/x-own"])
    }

    @Test("a number that is not finite is an error", arguments: [Double.nan, .infinity, -.infinity])
    func notFinite(value: Double) {
        let error = #expect(throws: TransferError.self) { try body(["a": ["b": [.double(value)]]]) }
        #expect(error?.code == .invalidRequest)
    }

    @Test("there are so many levels at most")
    func depth() throws {
        func nested(_ levels: Int) -> ParameterValue {
            (0..<levels).reduce(1) { value, level in level.isMultiple(of: 2) ? [value] : ["k": value] }
        }
        #expect(try !body(["a": nested(ParameterValue.maximumDepth)]).isEmpty)
        let error = #expect(throws: TransferError.self) { try body(["a": nested(ParameterValue.maximumDepth + 1)]) }
        #expect(error?.code == .invalidRequest)
    }
}
