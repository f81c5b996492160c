import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: parameters in URLs, forms and JSON", .timeLimit(.minutes(1)))
struct HTTPBinEncodingTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    /// Values, and the text that a server reads for each in a query or form.
    static let values: [(ParameterValue, String)] = [
        ("b", "b"), ("", ""), (1, "1"), (-1, "-1"), (0, "0"), (1.5, "1.5"), (-0.25, "-0.25"), (true, "1"), (false, "0"),
        (nil, ""), ("two words", "two words"), ("a+b", "a+b"), ("a&b=c", "a&b=c"), ("100%", "100%"), ("%20", "%20"),
        ("?/#", "?/#"), ("[]{}|\\^`\"<>", "[]{}|\\^`\"<>"), (":/?#[]@!$&'()*+,;=", ":/?#[]@!$&'()*+,;="),
        ("äöü", "äöü"), ("日本語", "日本語"), ("🙂", "🙂"), ("a\nb", "a\nb"), ("\u{7F}", "\u{7F}"),
    ]

    // MARK: In the URL

    @Test("each kind of value arrives in the query", arguments: values)
    func query(_ value: ParameterValue, _ text: String) async throws {
        let echo = try await client.echo(["a": value], .get, URLEncoding())
        #expect(echo["args"]?["a"]?.text == text && echo["data"]?.text == "")
    }

    @Test("each kind of value arrives in a form", arguments: values)
    func form(_ value: ParameterValue, _ text: String) async throws {
        let echo = try await client.echo(["a": value], .post, URLEncoding())
        #expect(echo["form"]?["a"]?.text == text && echo["args"]?.members.isEmpty == true)
    }

    @Test("names are encoded like values", arguments: ["a b", "a&b", "a=b", "a?b/c", "ä", "a+b", "a[b", "1"])
    func names(_ name: String) async throws {
        let (query, form) = (
            try await client.echo([name: 1], .get, URLEncoding()),
            try await client.echo([name: 1], .post, URLEncoding())
        )
        #expect(query["args"]?[name]?.text == "1" && form["form"]?[name]?.text == "1")
    }

    @Test(
        "the method decides between query and form",
        arguments: [(.get, true), (.delete, true), (.post, false), (.put, false), (.patch, false)]
            as [(HTTPRequest.Method, Bool)])
    func place(_ method: HTTPRequest.Method, _ isQuery: Bool) async throws {
        let echo = try await client.echo(["a": "b"], method, URLEncoding())
        #expect(echo["args"]?["a"]?.text == (isQuery ? "b" : nil) && echo["form"]?["a"]?.text == (isQuery ? nil : "b"))
        #expect(echo.field("Content-Type") == (isQuery ? nil : URLEncoding.contentType))
    }

    @Test(
        "the place can be set whatever the method",
        arguments: [(.post, .queryString), (.put, .queryString), (.delete, .httpBody), (.post, .httpBody)]
            as [(HTTPRequest.Method, URLEncoding.Destination)])
    func setPlace(_ method: HTTPRequest.Method, _ destination: URLEncoding.Destination) async throws {
        let echo = try await client.echo(["a": "b"], method, URLEncoding(destination: destination))
        let isQuery = destination == .queryString
        #expect(echo["args"]?["a"]?.text == (isQuery ? "b" : nil) && echo["form"]?["a"]?.text == (isQuery ? nil : "b"))
    }

    @Test("parameters of HEAD are in the query")
    func head() async throws {
        let outcome = await manager.request(client.url("/get"), method: .head, parameters: ["a": 1]).outcome
        #expect(outcome.request?.url == client.url("/get?a=1"))
    }

    @Test(
        "arrays are named as the encoding says",
        arguments: [
            (.brackets, ["a[]": ["1", "2"]]), (.noBrackets, ["a": ["1", "2"]]),
            (.indexInBrackets, ["a[0]": ["1"], "a[1]": ["2"]]),
        ] as [(URLEncoding.ArrayEncoding, [String: [String]])], [.get, .post] as [HTTPRequest.Method])
    func arrays(_ expected: (URLEncoding.ArrayEncoding, [String: [String]]), _ method: HTTPRequest.Method) async throws
    {
        let echo = try await client.echo(["a": [1, 2]], method, URLEncoding(arrayEncoding: expected.0))
        #expect(echo[method == .get ? "args" : "form"]?.members.mapValues(\.texts) == expected.1)
    }

    @Test(
        "Booleans are written as the encoding says",
        arguments: [(.numeric, "1", "0"), (.literal, "true", "false")]
            as [(URLEncoding.BoolEncoding, String, String)])
    func booleans(_ encoding: URLEncoding.BoolEncoding, _ yes: String, _ no: String) async throws {
        let echo = try await client.echo(["a": true, "b": false, "c": 1], .get, URLEncoding(boolEncoding: encoding))
        #expect(echo["args"]?["a"]?.text == yes && echo["args"]?["b"]?.text == no && echo["args"]?["c"]?.text == "1")
    }

    @Test(
        "nested values have names with brackets",
        arguments: [
            (["a": ["b": 1]], ["a[b]": ["1"]]), (["a": ["b": ["c": 1]]], ["a[b][c]": ["1"]]),
            (["a": ["b": [1, 2]]], ["a[b][]": ["1", "2"]]), (["a": [["b": 1]]], ["a[][b]": ["1"]]),
            (["a": [], "b": [:], "c": 1], ["c": ["1"]]),
        ] as [(Parameters, [String: [String]])])
    func nested(_ parameters: Parameters, _ expected: [String: [String]]) async throws {
        let echo = try await client.echo(parameters, .get, URLEncoding())
        #expect(echo["args"]?.members.mapValues(\.texts) == expected)
    }

    @Test(
        "parameters are appended to a query that is there",
        arguments: [
            ("/anything?z=1", "/anything?z=1&a=b"), ("/anything?", "/anything?a=b"),
            ("/anything?z=1&", "/anything?z=1&a=b"),
            ("/anything?z=1#part", "/anything?z=1&a=b#part"), ("/anything#part", "/anything?a=b#part"),
        ])
    func appended(_ path: String, _ expected: String) async throws {
        let request = manager.request(client.url(path), parameters: ["a": "b"])
        #expect(request.original?.url == client.url(expected))
        #expect(try await request.decoded(as: JSONValue.self)["args"]?["a"]?.text == "b")
    }

    @Test("a URL without parameters stays as it is", arguments: ["/anything", "/anything?", "/anything?a=%2f"])
    func unchanged(_ path: String) async throws {
        let request = manager.request(client.url(path), parameters: [:])
        #expect(request.original?.url == client.url(path))
        #expect(await request.validate().outcome.error == nil)
    }

    @Test("pairs are sorted by name, so that equal parameters give equal URLs")
    func sorted() {
        let request = manager.request(client.url("/get"), parameters: ["c": 3, "a": 1, "b": [2, 1]])
        #expect(request.original?.url == client.url("/get?a=1&b%5B%5D=2&b%5B%5D=1&c=3"))
    }

    @Test("the characters that RFC 3986 permits are not encoded in a query")
    func plainCharacters() {
        let text = "ABCXYZabcxyz0189-._~/?"
        #expect(manager.request("http://a/", parameters: ["a": .string(text)]).original?.url == "http://a/?a=\(text)")
    }

    @Test("long parameters arrive whole", arguments: [.get, .post] as [HTTPRequest.Method])
    func long(_ method: HTTPRequest.Method) async throws {
        let text = String(repeating: "一二三四五六七八九十", count: 300)
        let echo = try await client.echo(["a": .string(text)], method, URLEncoding())
        #expect(echo[method == .get ? "args" : "form"]?["a"]?.text == text)
    }

    @Test("the fields of the request are kept, its own media type too")
    func ownType() async throws {
        let own = "application/x-www-form-urlencoded"
        let request = manager.request(
            client.url("/post"), method: .post, parameters: ["a": 1], headers: [.contentType: own, .accept: "*/*"])
        let echo = try await request.decoded(as: JSONValue.self)
        #expect(echo.field("Content-Type") == own && echo.field("Accept") == "*/*" && echo["form"]?["a"]?.text == "1")
    }

    @Test("a picture in base64 arrives unchanged in a form")
    func base64() async throws {
        let picture = try await manager.request(client.url("/image/png")).value
        let text = picture.base64EncodedString()
        let echo = try await client.echo(["image": .string(text)], .post, URLEncoding())
        #expect(echo["form"]?["image"]?.text.flatMap { Data(base64Encoded: $0) } == picture)
    }

    // MARK: In JSON

    @Test(
        "each kind of value arrives in JSON",
        arguments: [
            ("b", .string("b")), ("", .string("")), (1, .number(1)), (-7, .number(-7)), (1.5, .number(1.5)),
            (true, .bool(true)), (false, .bool(false)), (nil, .null), ([], .array([])), ([:], .object([:])),
            ([1, "a", nil], .array([.number(1), .string("a"), .null])),
            (["b": ["c": [true]]], .object(["b": .object(["c": .array([.bool(true)])])])),
            ("a\"b\\c/d\n\t\u{1}", .string("a\"b\\c/d\n\t\u{1}")), ("äöü 日本語 🙂", .string("äöü 日本語 🙂")),
        ] as [(ParameterValue, JSONValue)])
    func json(_ value: ParameterValue, _ expected: JSONValue) async throws {
        let echo = try await client.echo(["a": value], .post, JSONEncoding())
        #expect(echo["json"] == .object(["a": expected]))
        #expect(echo.field("Content-Type") == JSONEncoding.contentType)
    }

    @Test(
        "JSON is a body whatever the method", arguments: [.get, .post, .put, .patch, .delete] as [HTTPRequest.Method])
    func jsonMethod(_ method: HTTPRequest.Method) async throws {
        let echo = try await client.echo(["a": [1, 2]], method, JSONEncoding())
        #expect(echo["json"]?["a"] == .array([.number(1), .number(2)]) && echo["args"]?.members.isEmpty == true)
    }

    @Test("JSON is written on one line or many, with sorted names")
    func jsonText() async throws {
        let parameters: Parameters = ["b": 1, "a": [true]]
        let short = try await client.echo(parameters, .post, JSONEncoding())
        #expect(short["data"]?.text == #"{"a":[true],"b":1}"#)
        let pretty = try await client.echo(parameters, .post, JSONEncoding(isPretty: true))
        #expect(pretty["data"]?.text == "{\n  \"a\": [\n    true\n  ],\n  \"b\": 1\n}")
    }

    @Test("JSON keeps the media type that the request sets")
    func jsonType() async throws {
        let own = "application/vnd.api+json"
        let request = manager.request(
            client.url("/post"), method: .post, parameters: ["a": 1], encoding: JSONEncoding(),
            headers: [.contentType: own])
        let echo = try await request.decoded(as: JSONValue.self)
        #expect(echo.field("Content-Type") == own && echo["json"]?["a"] == .number(1))
    }

    @Test("without parameters, JSON is no body")
    func noJSON() async throws {
        let echo = try await client.echo([:], .post, JSONEncoding())
        #expect(
            echo["data"]?.text == "" && echo["json"] == .null && echo.field("Content-Type") != JSONEncoding.contentType)
    }

    // MARK: Failures

    @Test("a number that is not finite fails the request", arguments: [Double.nan, .infinity, -.infinity])
    func notFinite(_ number: Double) async throws {
        let parameters: Parameters = ["a": .double(number)]
        #expect(await manager.request(client.url("/get"), parameters: parameters).outcome.code == .invalidRequest)
        let json = manager.request(client.url("/post"), method: .post, parameters: parameters, encoding: JSONEncoding())
        #expect(await json.outcome.code == .invalidRequest)
    }

    @Test("a nesting that is too deep fails the request", arguments: [true, false])
    func tooDeep(isJSON: Bool) async throws {
        var value: ParameterValue = 1
        for _ in 0..<ParameterValue.maximumDepth + 1 { value = [value] }
        let encoding: any ParameterEncoding = isJSON ? JSONEncoding() : URLEncoding()
        let request = manager.request(client.url("/post"), method: .post, parameters: ["a": value], encoding: encoding)
        #expect(await request.outcome.code == .invalidRequest)
    }

    @Test("an encoding of the caller's decides alone")
    func ownEncoding() async throws {
        struct Lines: ParameterEncoding {
            func encode(
                _ request: TransferRequest, with parameters: Parameters
            ) throws(TransferError) -> EncodedRequest {
                var request = request
                request.headerFields[.contentType] = "text/plain"
                return EncodedRequest(
                    request: request, body: Array(parameters.keys.sorted().joined(separator: ",").utf8))
            }
        }
        let echo = try await client.echo(["b": 1, "a": 2], .post, Lines())
        #expect(echo["data"]?.text == "a,b" && echo.field("Content-Type") == "text/plain")
    }
}
