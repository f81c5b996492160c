import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("A session's cache: what is answered from it, asked about, kept and dropped")
struct CacheExchangeTests {
    private let manager: SessionManager
    private let cache = ResponseCache(capacity: 64 << 20)

    init() throws {
        let cache = cache
        manager = try SessionManager(configuration: .test { $0.responseCache = cache })
    }

    private static let fresh = "Cache-Control: max-age=600"
    private static let stale = "Cache-Control: max-age=0"
    private static let tag = "ETag: \"v1\""

    /// Creates a server that sends these responses for `/f`, repeating the last one.
    private func server(_ answers: [ScriptedAnswer]) throws -> ScriptedServer { try ScriptedServer(["/f": answers]) }

    private func server(_ headers: String...) throws -> ScriptedServer {
        try server([.status(200, headers: headers, body: "first"), .status(200, headers: headers, body: "second")])
    }

    private func get(
        _ server: ScriptedServer, _ fields: HTTPFields = [:], policy: RequestCachePolicy? = nil, path: String = "/f"
    ) async -> DataResponse<String> {
        var request = TransferRequest(url: server.url(path), headerFields: fields)
        request.cachePolicy = policy
        return await manager.request(request).serialized(using: StringSerializer())
    }

    // MARK: Cache hits

    @Test("a fresh answer is given again without a word to the server, head and body, and the metrics say so")
    func fresh() async throws {
        let server = try server(Self.fresh, "X-Word: hello")
        let first = await get(server)
        #expect(first.value == "first" && !first.isFromCache)
        let second = await get(server)
        #expect(second.value == "first" && second.isFromCache)
        #expect(second.head?.status == 200 && second.head?.value(of: "x-word") == "hello")
        #expect(server.requests().count == 1)
        let exchange = try #require(second.metrics.last)
        #expect(second.metrics.exchanges.count == 1 && exchange.status == 200 && exchange.url == server.url("/f"))
        #expect(exchange.remoteAddress == nil && exchange.timeline.firstByte == nil && exchange.timeline.ended >= 0)
    }

    @Test("delegates hear of a stored answer as of any other, and handlers and validators judge it")
    func handlers() async throws {
        let server = try server(Self.fresh, "Content-Type: text/plain")
        _ = await get(server)
        let heard = Notes<String>()
        manager.delegate.dataTaskDidReceiveResponse = { _, head in
            heard.add("head \(head.status)")
            return .allow
        }
        manager.delegate.taskDidFinishCollectingMetrics = { _, metrics in
            heard.add("metrics \(metrics.last?.isFromCache == true)")
        }
        #expect(await get(server).value == "first")
        #expect(heard.all == ["head 200", "metrics true"])
        let outcome = await manager.request(server.url("/f")).validate(contentType: ["image/*"]).outcome
        #expect(outcome.error?.code == .unacceptableContentType)
        manager.delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, completion in
            Task.detached { completion(.cancel) }
        }
        #expect(await get(server).error?.code == .cancelled)
        #expect(server.requests().count == 1)
    }

    @Test("a stored body goes wherever a body goes: in pieces to a closure, to a reader at their own pace, into a file")
    func sinks() async throws {
        let resource = Resource(size: 900_000)
        let text = String(decoding: resource.bytes.map { $0 & 0x7F }, as: UTF8.self)
        let server = try server([.status(200, headers: [Self.fresh], body: text)])
        #expect(await get(server).value == text)

        let pieces = Notes<[UInt8]>()
        #expect(await manager.request(server.url("/f")).stream { pieces.add($0) }.outcome.error == nil)
        #expect(pieces.all.count > 1 && pieces.all.flatMap { $0 } == Array(text.utf8))

        var read: [UInt8] = []
        let request = manager.request(server.url("/f"))
        for try await bytes in request.body {
            read += bytes
            await Task.yield()
        }
        #expect(read == Array(text.utf8))

        let place = try Place()
        manager.delegate.dataTaskDidReceiveResponse = { _, _ in .becomeDownload(place.target()) }
        let download = manager.request(server.url("/f"))
        #expect(await download.outcome.error == nil)
        #expect(try place.content(of: "file") == Array(text.utf8))
        #expect(server.requests().count == 1)
    }

    @Test("a stored answer waits for its reader, and ends where the request is cancelled", .timeLimit(.minutes(1)))
    func cancelled() async throws {
        // More than is buffered for a reader.
        let text = String(repeating: "x", count: 4_000_000)
        let server = try server([.status(200, headers: [Self.fresh], body: text)])
        #expect(await get(server).value == text)
        let request = manager.request(server.url("/f"))
        let reader = request.body.makeAsyncIterator()
        try await eventually(that: "no more is held for the reader") {
            request.progress.completedBytes >= Int64(BodyChannel.capacity)
        }
        #expect(request.progress.completedBytes < 1_000_000)
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        withExtendedLifetime(reader) {}
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("the request's own limit of a body's size holds for a stored one")
    func limit() async throws {
        let server = try server(Self.fresh)
        _ = await get(server)
        var request = TransferRequest(url: server.url("/f"))
        request.maximumBodySize = 4
        #expect(await manager.request(request).outcome.error?.code == .tooLarge)
    }

    // MARK: Policies

    @Test("each policy does what it says with a fresh answer, a stale one, and none")
    func policies() async throws {
        /// Returns the body of the second of two requests, and the number of requests that reached the server.
        func outcome(_ policy: RequestCachePolicy, _ header: String) async throws -> String {
            let server = try server(header)
            _ = await get(server)
            let second = await get(server, policy: policy)
            return "\(second.value ?? second.error?.code.rawValue ?? "") \(server.requests().count)"
        }
        for header in [Self.fresh, Self.stale] {
            #expect(try await outcome(.reloadIgnoringLocalCacheData, header) == "second 2")
            #expect(try await outcome(.returnCacheDataElseLoad, header) == "first 1")
            #expect(try await outcome(.returnCacheDataDontLoad, header) == "first 1")
            // Without a validator a conditional request is impossible.
            #expect(try await outcome(.reloadRevalidatingCacheData, header) == "second 2")
        }
        #expect(try await outcome(.useProtocolCachePolicy, Self.stale) == "second 2")
        let never = "Cache-Control: no-store"
        #expect(try await outcome(.returnCacheDataElseLoad, never) == "second 2")
        #expect(try await outcome(.returnCacheDataDontLoad, never) == "not-cached 1")
    }

    @Test("what may not be asked for and is not stored fails without a word to the server", arguments: [true, false])
    func notCached(hasCache: Bool) async throws {
        let server = try server(Self.fresh)
        let cache = hasCache ? cache : nil
        let manager = try SessionManager(
            configuration: .test {
                $0.responseCache = cache
                $0.requestCachePolicy = .returnCacheDataDontLoad
            })
        #expect(await manager.request(server.url("/f")).outcome.error?.code == .notCached)
        let post = TransferRequest(url: server.url("/f"), method: .post)
        #expect(await manager.upload(.data([1]), with: post).outcome.error?.code == .notCached)
        #expect(server.requests().isEmpty)
        #expect(RetryClass(.notCached) == .never)
        // The request's policy overrides the session's.
        var request = TransferRequest(url: server.url("/f"))
        request.cachePolicy = .useProtocolCachePolicy
        #expect(await manager.request(request).outcome.error == nil)
    }

    @Test("without a cache, as by default, every answer is the server's")
    func noCache() async throws {
        #expect(SessionConfiguration().responseCache == nil)
        let server = try server(Self.fresh)
        let manager = try SessionManager(configuration: .test())
        for body in ["first", "second"] { #expect(try await manager.request(server.url("/f")).string == body) }
    }

    // MARK: Revalidation

    @Test("a stale answer is asked about, and where the server says so it is given again, renewed")
    func revalidation() async throws {
        let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"
        let server = try server([
            .status(200, headers: [Self.stale, Self.tag, modified, "X-Word: old"], body: "first"),
            .status(304, headers: [Self.fresh, Self.tag, "X-Word: new"]),
        ])
        _ = await get(server)
        let second = await get(server)
        #expect(second.value == "first" && second.head?.status == 200 && second.isFromCache)
        #expect(second.head?.value(of: "x-word") == "new")
        #expect(second.metrics.exchanges.map(\.status) == [304, 200])
        #expect(second.metrics.exchanges.map(\.isFromCache) == [false, true])
        let asked = try #require(server.requests().last)
        #expect(asked.header("if-none-match") == "\"v1\"")
        #expect(asked.header("if-modified-since") == "Sun, 06 Nov 1994 08:49:37 GMT")
        // The 304 has made the stored response fresh.
        #expect(await get(server).value == "first")
        #expect(server.requests().count == 2)
        // A fresh response is revalidated if the policy demands it.
        #expect(await get(server, policy: .reloadRevalidatingCacheData).value == "first")
        #expect(server.requests().count == 3)
    }

    @Test("where the server has another version, that is the answer, and is stored in the place of the old one")
    func replaced() async throws {
        let server = try server([
            .status(200, headers: [Self.stale, Self.tag], body: "first"),
            .status(200, headers: [Self.fresh, "ETag: \"v2\""], body: "second"),
        ])
        for body in ["first", "second", "second"] { #expect(await get(server).value == body) }
        #expect(server.requests().map { $0.header("if-none-match") } == [nil, "\"v1\""])
    }

    @Test("a 304 about another version than the one stored is not believed: the server is asked without conditions")
    func mistaken() async throws {
        let server = try server([
            .status(200, headers: [Self.stale, Self.tag], body: "first"),
            .status(304, headers: ["ETag: \"v2\""]),
            .status(200, headers: [Self.fresh, "ETag: \"v2\""], body: "second"),
        ])
        _ = await get(server)
        let second = await get(server)
        #expect(second.value == "second" && !second.isFromCache)
        #expect(server.requests().map { $0.header("if-none-match") } == [nil, "\"v1\"", nil])
        #expect(await get(server).isFromCache)
    }

    @Test("a server's failure leaves what is stored as it is; the caller's own conditions are not the cache's")
    func failure() async throws {
        let server = try server([
            .status(200, headers: [Self.stale, Self.tag], body: "first"), .status(503), .status(304),
        ])
        _ = await get(server)
        #expect(await get(server).head?.status == 503)
        #expect(await get(server, policy: .returnCacheDataElseLoad).value == "first")
        let own = await get(server, [.ifNoneMatch: "\"mine\""])
        #expect(own.head?.status == 304 && server.requests().last?.header("if-none-match") == "\"mine\"")
    }

    // MARK: Keeping and dropping

    @Test(
        "a method that may change the resource drops what is stored, unless the server refuses",
        arguments: [
            (HTTPRequest.Method.put, 204, true), (.post, 200, true), (.delete, 303, true), (.patch, 404, false),
            (.post, 500, false), (.head, 200, false), (.options, 200, false),
        ])
    func unsafe(method: HTTPRequest.Method, status: Int, drops: Bool) async throws {
        let server = try ScriptedServer([
            "/f": [
                .status(200, headers: [Self.fresh], body: "first"),
                .status(status, headers: status == 303 ? ["Location: /other"] : []),
                .status(200, body: "second"),
            ], "/other": [.status(200, headers: ["Cache-Control: no-store"])],
        ])
        _ = await get(server)
        _ = await manager.request(TransferRequest(url: server.url("/f"), method: method)).outcome
        #expect(server.requests(for: "/f").count == 2)
        #expect(await get(server).value == (drops ? "second" : "first"))
    }

    @Test("an answer is for those alone who ask with the same fields, where it depends on them")
    func varying() async throws {
        let name = try #require(HTTPField.Name("X-Kind"))
        let server = try server(Self.fresh, "Vary: X-Kind")
        #expect(await get(server, [name: "a"]).value == "first")
        #expect(await get(server, [name: "a"]).value == "first")
        #expect(await get(server, [name: "b"]).value == "second")
        #expect(server.requests().count == 2)
    }

    @Test("nobody is given what another's credential or cookies brought, whatever the server says of it")
    func identities() async throws {
        let server = try server(Self.fresh, "Vary: Cookie")
        func get(_ user: String?) async -> DataResponse<Data?> {
            let credential = user.map { Credential(user: $0, password: "p") }
            return await manager.request(TransferRequest(url: server.url("/f"), credential: credential)).outcome
        }
        #expect(await get("anna").isFromCache == false)
        #expect(await get("anna").isFromCache)
        #expect(await get("bert").isFromCache == false)
        #expect(await get(nil).isFromCache == false)
        #expect(await get(nil).isFromCache)
        let cookie = try #require(Cookie(name: "sid", value: "1", domain: "127.0.0.1"))
        manager.session.configuration.cookieStorage?.set(cookie)
        #expect(await get(nil).isFromCache == false)
        #expect(await get(nil).isFromCache)
        // A response obtained with a request's own identity or trust is not shared either.
        var request = TransferRequest(url: server.url("/f"))
        request.identity = ClientIdentity(certificate: "c", key: "k")
        #expect(await manager.request(request).outcome.isFromCache == false)
        request.identity = nil
        request.caCertificates = "c"
        #expect(await manager.request(request).outcome.isFromCache == false)
    }

    @Test("only whole answers that are kept in memory are stored")
    func wholeOnly() async throws {
        func stores(_ server: ScriptedServer, _ ask: (TransferRequest) async -> Void) async -> Bool {
            cache.removeAll()
            await ask(TransferRequest(url: server.url("/f")))
            return cache.count == 1
        }
        let collected = await stores(try server(Self.fresh)) { _ = await manager.request($0).outcome }
        #expect(collected)
        let streamed = await stores(try server(Self.fresh)) { _ = await manager.request($0).stream { _ in }.outcome }
        #expect(!streamed)
        let part = await stores(try server(Self.fresh)) {
            var request = $0
            request.headerFields[.range] = "bytes=0-3"
            _ = await manager.request(request).outcome
        }
        #expect(!part)
    }

    @Test(
        "an answer is whole where the server says so; the end of a connection does not tell",
        arguments: [
            ("1.1", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", true),
            ("1.1", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n", false),
            ("1.1", "Content-Length: 3\r\n", "abc", true), ("1.1", "Content-Length: 4\r\n", "abc", false),
            ("1.1", "", "abc", false), ("1.0", "", "abc", false),
        ])
    func ends(version: String, length: String, body: String, isStored: Bool) async throws {
        let answer = "HTTP/\(version) 200 OK\r\n\(Self.fresh)\r\n\(length)Connection: close\r\n\r\n\(body)"
        let server = try RawServer([Array(answer.utf8)])
        let outcome = await manager.request(server.url()).outcome
        #expect(outcome.error == nil || !isStored)
        #expect(cache.count == (isStored ? 1 : 0))
    }

    @Test("downloads neither ask the cache nor fill it")
    func downloads() async throws {
        let place = try Place()
        let server = try server(Self.fresh)
        _ = await get(server)
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        _ = try await request.value
        #expect(try place.content(of: "file") == Array("second".utf8))
        #expect(await get(server).value == "first")
    }

    @Test("a redirect is followed anew, what it leads to may be stored; challenges are never answered from the cache")
    func onTheWay() async throws {
        let server = try ScriptedServer([
            "/r": [.status(301, headers: ["Location: /f", Self.fresh])],
            "/f": [.status(200, headers: [Self.fresh], body: "first"), .status(200, body: "second")],
            "/secret": [
                .status(401, headers: ["WWW-Authenticate: Basic realm=\"r\"", Self.fresh]),
                .status(200, headers: [Self.fresh], body: "in"),
            ],
        ])
        for _ in 0..<2 {
            let response = await get(server, path: "/r")
            #expect(response.value == "first" && response.request?.url == server.url("/f"))
        }
        #expect(server.requests(for: "/r").count == 2 && server.requests(for: "/f").count == 1)
        // The redirect as a final response is not stored either: other requests must follow it.
        var stopping = TransferRequest(url: server.url("/r"))
        stopping.redirects = .stop
        #expect(await manager.request(stopping).outcome.head?.status == 301)
        #expect(await get(server, path: "/r").value == "first")

        #expect(await get(server, path: "/secret").head?.status == 401)
        let request = manager.request(server.url("/secret")).authenticate(user: "u", password: "p")
        #expect(try await request.string == "in")
    }

    // MARK: Delegates and storing

    @Test("K30: closure with completion, closure, the task's own, default: the first there is says what is stored")
    func precedence() async throws {
        func stored(own: Bool = false) async throws -> Bool {
            cache.removeAll()
            let server = try server(Self.fresh)
            let request = manager.request(server.url("/f"))
            if own { request.dataDelegate.dataTaskWillCacheResponse = { _, _ in nil } }
            #expect(try await request.string == "first")
            return cache.count == 1
        }
        #expect(try await stored())
        #expect(try await !stored(own: true))
        let proposed = Notes<[UInt8]>()
        manager.delegate.dataTaskWillCacheResponse = { task, response in
            #expect(task.state == .running)
            proposed.add(response.body)
            return response
        }
        #expect(manager.delegate.responds(to: .dataTaskWillCacheResponse))
        #expect(try await stored(own: true))
        #expect(proposed.all == [Array("first".utf8)])
        for later in [false, true] {
            manager.delegate.dataTaskWillCacheResponseWithCompletion = { _, _, completion in
                if later { Task.detached { completion(nil) } } else { completion(nil) }
            }
            #expect(try await !stored())
        }
        // The request completes only after the delegate's decision. If the completion is released without a call, the
        // response is stored.
        manager.delegate.dataTaskWillCacheResponseWithCompletion = { _, response, completion in
            Task.detached { completion(response) }
        }
        #expect(try await stored())
        manager.delegate.dataTaskWillCacheResponseWithCompletion = { _, _, _ in }
        #expect(try await stored())
        #expect(proposed.all.count == 1)
    }

    @Test("a delegate is asked about what may be stored, and not again when it is given or renewed")
    func asked() async throws {
        let count = Notes<Int>()
        manager.delegate.dataTaskWillCacheResponse = { _, response in
            count.add(response.head.status)
            return response
        }
        let server = try server([
            .status(200, headers: [Self.stale, Self.tag], body: "first"), .status(304, headers: [Self.fresh]),
        ])
        for _ in 0..<3 { #expect(await get(server).value == "first") }
        #expect(count.all == [200])
        _ = await get(try self.server("Cache-Control: no-store"))
        #expect(count.all == [200])
    }

    @Test("cancelled while a delegate thinks about storing, a request completes", .timeLimit(.minutes(1)))
    func cancelWhileStoring() async throws {
        let server = try server(Self.fresh)
        let asked = AsyncStream.makeStream(of: (@Sendable (CachedResponse?) -> Void).self)
        manager.delegate.dataTaskWillCacheResponseWithCompletion = { _, _, completion in
            asked.continuation.yield(completion)
        }
        let request = manager.request(server.url("/f")).resume()
        for await completion in asked.stream {
            request.cancel()
            #expect(await request.outcome.error?.code == .cancelled)
            completion(nil)
            break
        }
        #expect(manager.delegate.requestCount == 0)
    }

    // MARK: A real server

    @Test("nginx's own validators and lifetimes: asked about where stale, not at all where fresh")
    func nginx() async throws {
        let nginx = try await Nginx([
            .custom("/fresh/", "alias @ROOT@/; expires 1h;"), .custom("/stale/", "alias @ROOT@/; expires -1;"),
            .custom("/never/", "alias @ROOT@/; add_header Cache-Control no-store;"),
        ])
        let resource = Resource(size: 10_000)
        try nginx.publish(resource, as: "f")
        for place in ["fresh", "stale", "never"] {
            for _ in 0..<3 {
                let outcome = await manager.request(nginx.url("/\(place)/f")).outcome
                #expect(outcome.head?.status == 200 && outcome.data.map { Array($0) } == resource.bytes)
            }
        }
        try await eventually(that: "nginx wrote down the last answer") { nginx.accesses(for: "/never/f").count == 3 }
        #expect(nginx.accesses(for: "/fresh/f").map(\.status) == [200])
        #expect(nginx.accesses(for: "/stale/f").map(\.status) == [200, 304, 304])
        #expect(nginx.accesses(for: "/never/f").map(\.status) == [200, 200, 200])
        // A changed file under the same name is detected.
        let other = Resource(size: 20_000, seed: 7)
        try nginx.publish(other, as: "f")
        #expect(try await Array(manager.request(nginx.url("/stale/f")).value) == other.bytes)
        #expect(try await Array(manager.request(nginx.url("/fresh/f")).value) == resource.bytes)
    }

    @Test("a compressed body is stored as it was handed on, for those alone who want it so")
    func compressed() async throws {
        let nginx = try await Nginx([
            .custom("/f", "gzip on; gzip_types *; gzip_min_length 0; expires 1h; alias @ROOT@/f;")
        ])
        let text = Array(repeating: UInt8(ascii: "a"), count: 50_000)
        try Resource(size: 0).write(to: "\(nginx.root)/f")
        let file = open("\(nginx.root)/f", O_WRONLY | O_TRUNC)
        #expect(text.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == text.count)
        close(file)
        for isFromCache in [false, true] {
            let outcome = await manager.request(nginx.url("/f")).outcome
            #expect(outcome.head?.contentCoding == "gzip" && outcome.isFromCache == isFromCache)
            #expect(outcome.data.map { Array($0) } == text)
        }
        // The coded body as it was sent.
        let raw = TransferRequest(url: nginx.url("/f"), headerFields: [.acceptEncoding: "gzip"])
        let outcome = await manager.request(raw).outcome
        #expect(!outcome.isFromCache && outcome.data.map { $0.count < 1000 } == true)
        #expect(try await Array(manager.request(nginx.url("/f")).value) == text)
    }

    @Test("over HTTP/2 what has a length is stored, and what may have been broken off unseen is not")
    func http2() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [
                .custom("/plain/", "alias @ROOT@/; expires 1h;"),
                .custom("/gzip/", "alias @ROOT@/; expires 1h; gzip on; gzip_types *; gzip_min_length 0;"),
            ], tls: .init(certificate: certificates.server), http2: true)
        try nginx.publish(Resource(size: 10_000), as: "f")
        let cache = cache
        let manager = try SessionManager(
            configuration: .test {
                $0.responseCache = cache
                $0.caFile = certificates.authority.path
                $0.httpVersion = .http2
            })
        for (place, isStored) in [("plain", true), ("gzip", false)] {
            let url = nginx.url("/\(place)/f", host: "localhost")
            let first = await manager.request(url).outcome
            #expect(first.metrics.last?.protocolName == "h2" && first.data?.count == 10_000)
            #expect(await manager.request(url).outcome.isFromCache == isStored)
        }
    }
}
