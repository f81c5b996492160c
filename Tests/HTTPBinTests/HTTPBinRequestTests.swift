import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: data requests", .timeLimit(.minutes(1)))
struct HTTPBinRequestTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    // MARK: What is sent

    @Test(
        "the server receives the method of the request",
        arguments: [.get, .post, .put, .patch, .delete] as [HTTPRequest.Method])
    func method(_ method: HTTPRequest.Method) async throws {
        #expect(try await client.echo("/anything", method)["method"]?.text == method.rawValue)
    }

    @Test("a request that is only text uses GET and sends no body")
    func textAlone() async throws {
        let echo = try await manager.request(client.url("/anything")).decoded(as: JSONValue.self)
        #expect(echo["method"]?.text == "GET" && echo["data"]?.text == "")
        #expect(echo.field("Content-Type") == nil)
    }

    @Test("HEAD receives the head of the page and no body")
    func head() async throws {
        let outcome = await manager.request(client.request("/html", .head)).validate().outcome
        #expect(outcome.status == 200 && outcome.error == nil)
        #expect(outcome.data?.isEmpty == true && (outcome.head?.contentLength ?? 0) > 0)
    }

    @Test("OPTIONS receives the permitted methods")
    func options() async throws {
        let outcome = await manager.request(client.request("/get", .options)).outcome
        #expect(outcome.head?.value(of: "allow")?.contains("GET") == true)
    }

    @Test(
        "the server receives the header fields of the request",
        arguments: [
            ("X-Own", "yes"), ("Accept", "text/csv"), ("Accept-Language", "de-AT, de;q=0.5"), ("X-Empty", ""),
            ("X-Inner", "a  b, \"c\"; d=e"), ("Cache-Control", "no-cache"), ("User-Agent", "someone/1.0"),
            ("Referer", "http://example.org/a?b=c"),
        ])
    func fields(_ name: String, _ value: String) async throws {
        let fields = HTTPFields([HTTPField(name: try #require(HTTPField.Name(name)), value: value)])
        #expect(try await client.echo("/headers", .get, fields).field(name) == value)
    }

    @Test("two lines of one field both arrive, in order")
    func repeatedField() async throws {
        let name = try #require(HTTPField.Name("X-Twice"))
        let fields = HTTPFields([HTTPField(name: name, value: "1"), HTTPField(name: name, value: "2")])
        let value = try await client.echo("/headers", .get, fields).field("X-Twice")
        #expect(value?.filter { $0 != " " } == "1,2")
    }

    @Test("the query in a URL arrives decoded")
    func query() async throws {
        let args = try await client.echo("/get?a=1&b=two%20words&c=%C3%A4&a=3")["args"]
        #expect(args?["a"]?.texts == ["1", "3"] && args?["b"]?.text == "two words" && args?["c"]?.text == "ä")
    }

    @Test("the fragment of a URL is not sent")
    func fragment() async throws {
        #expect(try await client.echo("/get?a=1#b=2")["url"]?.text == client.url("/get?a=1"))
    }

    @Test("a percent-encoded path arrives as it was written", arguments: ["a%20b", "a%2Bb", "%C3%A4", "a;b=c", "a,b"])
    func path(_ path: String) async throws {
        let response = await manager.request(client.url("/anything/\(path)")).validate().serialized(
            using: JSONSerializer())
        #expect(response.request?.url == client.url("/anything/\(path)"))
        #expect(response.value?["url"]?.text != nil)
    }

    @Test("text that is no URL yet is percent-encoded", arguments: ["two words", "ä", "日本語", "🙂", "a\"b<c>"])
    func encodedText(_ text: String) async throws {
        #expect(try await client.echo("/get?a=\(text)")["args"]?["a"]?.text == text)
        var request = client.request("/basic-auth/\(text)/passwd")
        request.credential = Credential(user: text, password: "passwd")
        #expect(await manager.request(request).outcome.status == 200)
    }

    @Test("a name below localhost is this machine", arguments: ["localhost", "api.localhost", "a.b.localhost"])
    func localNames(_ name: String) async throws {
        let response = await manager.request(client.server.url("/headers", host: name)).serialized(
            using: JSONSerializer())
        #expect(response.value?.field("Host") == "\(name):\(client.server.port)")
    }

    @Test("a host name beyond ASCII is sent in its ASCII form")
    func internationalName() async throws {
        let request = manager.request(client.server.url("/headers", host: "bücher.localhost"))
        let echo = try await request.decoded(as: JSONValue.self)
        #expect(echo.field("Host") == "xn--bcher-kva.localhost:\(client.server.port)")
    }

    // MARK: What is received

    @Test(
        "without validation, a response of any status is a result",
        arguments: [200, 201, 202, 203, 204, 205, 400, 401, 402, 403, 404, 405, 406, 409, 410, 418, 429, 500, 502, 503])
    func anyStatus(_ status: Int) async throws {
        let outcome = await manager.request(client.url("/status/\(status)")).outcome
        #expect(outcome.error == nil && outcome.status == status)
    }

    @Test(
        "a status is reported for each method",
        arguments: [.get, .post, .put, .patch, .delete, .head] as [HTTPRequest.Method], [200, 404])
    func statusOfMethod(_ method: HTTPRequest.Method, _ status: Int) async throws {
        let outcome = await manager.request(client.request("/status/\(status)", method)).outcome
        #expect(outcome.error == nil && outcome.status == status)
    }

    @Test("the fields of a response can be read whatever the case of their names")
    func responseFields() async throws {
        let outcome = await manager.request(client.url("/response-headers?X-One=1&X-Two=a%20b")).outcome
        #expect(outcome.head?.value(of: "X-One") == "1" && outcome.head?.value(of: "x-two") == "a b")
        #expect(outcome.head?.headerFields[.contentType] == "application/json")
        #expect(outcome.head?.version == "1.1")
    }

    @Test("a response reports its request, head, data, result and times")
    func wholeResponse() async throws {
        let outcome = await manager.request(client.url("/get")).outcome
        #expect(outcome.request?.url == client.url("/get") && outcome.request?.method == .get)
        #expect(outcome.status == 200 && outcome.data == outcome.value ?? nil)
        #expect(outcome.head?.contentLength == outcome.data.map { Int64($0.count) })
        let timeline = try #require(outcome.timeline)
        let steps = [timeline.requestBegan, timeline.firstByte, timeline.ended].compactMap { $0 }
        #expect(steps.count == 3 && steps == steps.sorted())
        let exchange = try #require(outcome.metrics.last)
        #expect(exchange.remoteAddress == "127.0.0.1" && exchange.remotePort == client.server.port)
        #expect(exchange.protocolName == "http/1.1" && exchange.status == 200 && !outcome.isFromCache)
    }

    @Test("a body with and without Content-Length is complete", arguments: ["/range/30000", "/stream-bytes/30000"])
    func framing(_ path: String) async throws {
        let outcome = await manager.request(client.url(path)).validate().outcome
        #expect(outcome.data?.count == 30_000)
        #expect((outcome.head?.contentLength == nil) == path.hasPrefix("/stream"))
    }

    @Test(
        "a body of any size is complete", arguments: [1, 2, 1023, 1024, 16_384, 65_537, 102_400], [1000, 10_240])
    func sizes(_ size: Int, _ chunk: Int) async throws {
        let data = try await manager.request(client.url("/range/\(size)?chunk_size=\(chunk)")).validate().value
        #expect([UInt8](data) == alphabet(size))
    }

    @Test(
        "a compressed body is decoded", arguments: [("gzip", "gzipped"), ("deflate", "deflated"), ("brotli", "brotli")])
    func compressed(_ path: String, _ member: String) async throws {
        let echo = try await client.echo("/\(path)")
        #expect(echo[member] == .bool(true))
    }

    @Test("the codings of the session's default fields are requested")
    func acceptEncoding() async throws {
        let field = try await client.echo("/headers").field("Accept-Encoding")
        #expect(field == SessionManager.defaultHTTPHeaders[.acceptEncoding] && field?.contains("gzip") == true)
    }

    @Test("a second request reuses the connection of the first")
    func reusedConnection() async throws {
        // Each thread has connections of its own.
        let client = try await Client { $0.loops = 1 }
        _ = try await client.manager.request(client.url("/get")).value
        let second = await client.manager.request(client.url("/get")).outcome
        #expect(second.metrics.last?.isReusedConnection == true && second.timeline?.connected == nil)
    }

    @Test("many requests at once each receive their own response", arguments: [2, 20])
    func together(_ count: Int) async throws {
        let numbers = await withTaskGroup(of: String?.self) { group in
            for number in 0..<count {
                group.addTask { try? await client.echo("/get?number=\(number)")["args"]?["number"]?.text }
            }
            return await group.reduce(into: Set<String>()) { if let text = $1 { $0.insert(text) } }
        }
        #expect(numbers == Set((0..<count).map(String.init)))
    }

    // MARK: Bodies in pieces

    @Test("a body is read as a sequence of pieces")
    func sequence() async throws {
        var bytes: [UInt8] = []
        for try await piece in manager.request(client.url("/range/50000?chunk_size=1000")).body { bytes += piece }
        #expect(bytes == alphabet(50_000))
    }

    @Test("a closure receives the body in pieces, and the response then has none")
    func closure() async throws {
        let pieces = Record<[UInt8]>()
        let outcome = await manager.request(client.url("/range/50000?chunk_size=1000")).stream { pieces.add($0) }
            .outcome
        #expect(outcome.error == nil && outcome.data == nil)
        #expect(pieces.all.flatMap { $0 } == alphabet(50_000))
    }

    @Test("lines of JSON are read one after the other", arguments: [1, 20])
    func lines(_ count: Int) async throws {
        let text = try await manager.request(client.url("/stream/\(count)")).validate().string
        let numbers = try text.split(separator: "\n").map {
            try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8))["id"]
        }
        #expect(numbers == (0..<count).map { JSONValue(integerLiteral: Int64($0)) })
    }

    @Test("a reader that stops early cancels the request")
    func abandonedSequence() async throws {
        let request = manager.request(client.url("/drip?numbytes=10&duration=10"))
        for try await piece in request.body where !piece.isEmpty { break }
        #expect(await request.outcome.code == .cancelled)
    }

    // MARK: Limits

    @Test("a body beyond the session's limit fails as too large")
    func sessionLimit() async throws {
        let client = try await Client { $0.maximumCollectedBytes = 1000 }
        #expect(await client.manager.request(client.url("/range/1000")).outcome.error == nil)
        #expect(await client.manager.request(client.url("/range/1001")).outcome.code == .tooLarge)
    }

    @Test("a body beyond the request's limit fails as too large", arguments: ["/range/2000", "/stream-bytes/2000"])
    func requestLimit(_ path: String) async throws {
        var request = client.request(path)
        request.maximumBodySize = 2000
        #expect(await manager.request(request).outcome.error == nil)
        request.maximumBodySize = 1999
        #expect(await manager.request(request).outcome.code == .tooLarge)
    }

    @Test("a server that is silent for longer than the stall time-out fails the request")
    func stall() async throws {
        let client = try await Client { $0.stallTimeout = 300 }
        #expect(await client.manager.request(client.url("/delay/10")).outcome.code == .stalled)
    }

    @Test("a port without a server fails the request as a failed connection")
    func closedPort() async throws {
        let port = try FreePort.next()
        let outcome = await manager.request("http://127.0.0.1:\(port)/").outcome
        #expect(outcome.code == .cannotConnect && outcome.head == nil && outcome.request != nil)
        #expect(outcome.error?.origin == "http://127.0.0.1:\(port)")
    }
}
