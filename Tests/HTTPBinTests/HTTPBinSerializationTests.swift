import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: bodies as values", .timeLimit(.minutes(1)))
struct HTTPBinSerializationTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    private struct Slideshow: Decodable, Equatable, Sendable {
        struct Slide: Decodable, Equatable, Sendable {
            var title: String
            var type: String
            var items: [String]?
        }

        var title: String
        var author: String
        var slides: [Slide]
    }

    // MARK: Bytes and text

    @Test("bytes are the body as it is", arguments: [1, 100, 50_000])
    func data(_ count: Int) async throws {
        let response = await manager.request(client.url("/range/\(count)")).serialized(using: DataSerializer())
        #expect(response.value.map { Array($0) } == alphabet(count) && response.value == response.data)
    }

    @Test("text is read as UTF-8", arguments: ["hello", "äöü€", "日本語", "🙂👩‍👩‍👧", "a\nb\r\nc"])
    func text(_ text: String) async throws {
        let base64 = Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        #expect(try await manager.request(client.url("/base64/\(base64)")).string == text)
    }

    @Test("a long text of many alphabets is read as UTF-8")
    func longText() async throws {
        let text = try await manager.request(client.url("/encoding/utf8")).string
        #expect(text.contains("∮ E⋅da = Q") && text.contains("ᚻᛖ ᚳᚹᚫᚦ") && text.contains("แผ่นดิน"))
    }

    @Test("bytes that are no text fail as text", arguments: ["/image/png", "/image/jpeg"])
    func noText(_ path: String) async throws {
        let response = await manager.request(client.url(path)).serialized(using: StringSerializer())
        #expect(response.code == .serializationFailed && response.data?.isEmpty == false && response.status == 200)
    }

    // MARK: JSON

    @Test("JSON of any shape is read by its members")
    func json() async throws {
        let response = await manager.request(client.url("/json")).serialized(using: JSONSerializer())
        #expect(
            response.value?["slideshow"]?["slides"]?[1]?["items"]?[0]?.text == "Why <em>WonderWidgets</em> are great")
        #expect(response.value?["slideshow"]?["slides"]?[9] == nil && response.value?["missing"] == nil)
    }

    @Test(
        "each kind of JSON value is itself",
        arguments: [
            ("null", .null), ("true", .bool(true)), ("false", .bool(false)), ("0", .number(0)),
            ("-1.5e3", .number(-1500)),
            ("9007199254740991", .number(9_007_199_254_740_991)), ("\"a\\u00e4\\n\"", .string("aä\n")),
            ("\"\"", .string("")),
            ("[]", .array([])), ("{}", .object([:])), ("[1,[2]]", .array([.number(1), .array([.number(2)])])),
        ] as [(String, JSONValue)])
    func kinds(_ text: String, _ value: JSONValue) async throws {
        let request = client.request("/post", .post, [.contentType: "application/json"])
        let echo = try await manager.upload(.text("{\"value\": \(text)}"), with: request).decoded(as: JSONValue.self)
        #expect(echo["json"]?["value"] == value)
    }

    @Test("JSON is decoded as a type of the caller's")
    func decodable() async throws {
        struct Page: Decodable, Sendable { var slideshow: Slideshow }
        let page = try await manager.request(client.url("/json")).validate().decoded(as: Page.self)
        #expect(page.slideshow.author == "Yours Truly" && page.slideshow.slides.count == 2)
        #expect(
            page.slideshow.slides[0] == Slideshow.Slide(title: "Wake up to WonderWidgets!", type: "all", items: nil))
    }

    @Test("a decoder of the caller's decodes the JSON")
    func decoder() async throws {
        struct Names: Decodable, Equatable, Sendable { var firstName: String }
        struct Echo: Decodable, Sendable { var json: Names }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let serializer = DecodableSerializer<Echo>(decoder: decoder)
        let request = client.request("/post", .post, [.contentType: "application/json"])
        let response = await manager.upload(.text(#"{"first_name": "Ada"}"#), with: request).serialized(
            using: serializer)
        #expect(response.value?.json == Names(firstName: "Ada"))
    }

    @Test("a body that is no JSON fails with the decoder's error beneath", arguments: ["/html", "/xml", "/range/10"])
    func noJSON(_ path: String) async throws {
        let response = await manager.request(client.url(path)).serialized(using: JSONSerializer())
        #expect(response.code == .serializationFailed && response.error?.underlying is DecodingError)
        #expect(response.data?.isEmpty == false && response.value == nil)
    }

    @Test("JSON of another shape fails with the decoder's error beneath")
    func otherShape() async throws {
        let response = await manager.request(client.url("/uuid")).serialized(using: DecodableSerializer<Slideshow>())
        #expect(response.code == .serializationFailed && response.error?.underlying is DecodingError)
    }

    // MARK: Empty bodies

    @Test("an empty response with 204 or 205 is empty data, empty text and null", arguments: [204, 205])
    func emptySuccess(_ status: Int) async throws {
        let url = client.url("/status/\(status)")
        #expect(await manager.request(url).serialized(using: DataSerializer()).value?.isEmpty == true)
        #expect(await manager.request(url).serialized(using: StringSerializer()).value?.isEmpty == true)
        #expect(await manager.request(url).serialized(using: JSONSerializer()).value == .null)
    }

    @Test("an empty response with any status is empty data and empty text", arguments: [200, 201, 204, 404, 500])
    func empty(_ status: Int) async throws {
        let url = client.url("/status/\(status)")
        #expect(await manager.request(url).serialized(using: DataSerializer()).value?.isEmpty == true)
        #expect(try await manager.request(url).string == "")
    }

    @Test("an empty response with another status is no JSON", arguments: [200, 201, 404, 500])
    func emptyJSON(_ status: Int) async throws {
        let url = client.url("/status/\(status)")
        #expect(await manager.request(url).serialized(using: JSONSerializer()).code == .serializationFailed)
        #expect(
            await manager.request(url).serialized(using: DecodableSerializer<JSONValue>()).code == .serializationFailed)
    }

    @Test("an awaited value may be empty", arguments: [200, 204, 404])
    func emptyValue(_ status: Int) async throws {
        #expect(try await manager.request(client.url("/status/\(status)")).value.isEmpty)
    }

    // MARK: Own serializers

    private struct Counter: ResponseSerializer {
        var error: (any Error)?

        func serialize(_ data: Data, of head: ResponseHead?) throws -> Int {
            if let error { throw error }
            return data.count + (head?.status ?? 0)
        }
    }

    @Test("a serializer of the caller's receives body and head")
    func ownSerializer() async throws {
        let response = await manager.request(client.url("/range/100")).serialized(using: Counter())
        #expect(response.value == 300)
    }

    @Test("an error of the serializer is beneath the error of the response")
    func ownError() async throws {
        let response = await manager.request(client.url("/get")).serialized(using: Counter(error: OwnError()))
        #expect(response.code == .serializationFailed && response.error?.underlying as? OwnError == OwnError())
    }

    @Test("an error of the library that a serializer throws is the error of the response")
    func libraryError() async throws {
        let error = TransferError(.tooLarge, "too much")
        #expect(await manager.request(client.url("/get")).serialized(using: Counter(error: error)).error == error)
    }

    @Test(
        "a failed request has the same error for every kind of value",
        arguments: ["connect", "validation", "cancelled"])
    func failure(_ reason: String) async throws {
        let port = try FreePort.next()
        let request = manager.request(reason == "connect" ? "http://127.0.0.1:\(port)/" : client.url("/status/500"))
        if reason == "validation" { request.validate() }
        if reason == "cancelled" { request.cancel() }
        let error = try #require(await request.outcome.error)
        #expect(await request.serialized(using: DataSerializer()).error == error)
        #expect(await request.serialized(using: StringSerializer()).error == error)
        #expect(await request.serialized(using: JSONSerializer()).error == error)
        #expect(await request.serialized(using: DecodableSerializer<Slideshow>()).error == error)
        #expect(await request.serialized(using: Counter(error: OwnError())).error == error)
    }

    @Test("one response is read as several values")
    func severalValues() async throws {
        let request = manager.request(client.url("/uuid"))
        let text = try await request.string
        #expect(try await request.value == Data(text.utf8))
        let uuid = try await request.decoded(as: [String: String].self)["uuid"]
        #expect(uuid.map(text.contains) == true && request.metrics.exchanges.count == 1)
    }
}
