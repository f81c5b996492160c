import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing
import Transfer

@Suite("httpbin: managers and sessions", .timeLimit(.minutes(1)))
struct HTTPBinSessionTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    // MARK: Creating

    @Test("a manager with default arguments has the default configuration")
    func defaults() async throws {
        let manager = try SessionManager()
        #expect(manager.session.delegate === manager.delegate && manager.startRequestsImmediately)
        #expect(manager.adapter == nil && manager.retrier == nil)
        let echo = try await manager.request(client.url("/headers")).decoded(as: JSONValue.self)
        for field in SessionManager.defaultHTTPHeaders { #expect(echo.field(field.name.rawName) == field.value) }
    }

    @Test("a manager has the configuration, the delegate and the policies that it was given")
    func arguments() throws {
        let delegate = SessionDelegate()
        var configuration = SessionConfiguration()
        configuration.maximumRedirects = 3
        let manager = try SessionManager(
            configuration: configuration, delegate: delegate,
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["a": .disableEvaluation]),
            startRequestsImmediately: false)
        #expect(manager.delegate === delegate && !manager.startRequestsImmediately)
        #expect(manager.session.configuration.maximumRedirects == 3)
        #expect(manager.session.configuration.trustPolicies.policies.keys.sorted() == ["a"])
    }

    @Test("a manager for a session needs the session's delegate", arguments: [true, false])
    func session(isOwn: Bool) async throws {
        let delegate = SessionDelegate()
        let session = try Session(configuration: .test(), delegate: delegate)
        let manager = SessionManager(session: session, delegate: isOwn ? delegate : SessionDelegate())
        #expect((manager != nil) == isOwn)
        if let manager { #expect(await manager.request(client.url("/get")).outcome.error == nil) }
    }

    @Test("the shared manager is always the same")
    func shared() async throws {
        #expect(try SessionManager.default === SessionManager.default)
        #expect(try await SessionManager.default.request(client.url("/get")).validate().value.isEmpty == false)
    }

    // MARK: Header fields

    @Test("the default User-Agent names library, libcurl and system")
    func userAgent() async throws {
        let text = try #require(try await client.echo("/user-agent")["user-agent"]?.text)
        #expect(text == SessionManager.defaultHTTPHeaders[.userAgent] && text.hasPrefix("dld-transfer/"))
        #expect(text.contains("libcurl/") && text.contains("Linux"))
    }

    @Test("a configuration made without defaults sends only what is required")
    func plain() async throws {
        let manager = try SessionManager(configuration: SessionConfiguration())
        let echo = try await manager.request(client.url("/headers")).decoded(as: JSONValue.self)
        #expect(echo.field("User-Agent") == "dld-transfer/0.1" && echo.field("Accept-Language") == nil)
    }

    @Test(
        "the session's fields are sent with every request that does not set them", arguments: [nil, "own"] as [String?])
    func additional(_ own: String?) async throws {
        let client = try await Client { $0.additionalHeaders = ["X-Session: session", "X-Other: b"] }
        let name = try #require(HTTPField.Name("X-Session"))
        let echo = try await client.echo("/headers", .get, own.map { [name: $0] } ?? [:])
        #expect(echo.field("X-Session") == own ?? "session" && echo.field("X-Other") == "b")
    }

    @Test("the session's User-Agent gives way to that of the request", arguments: [nil, "own/2"] as [String?])
    func sessionAgent(_ own: String?) async throws {
        let client = try await Client { $0.userAgent = "session/1" }
        let echo = try await client.echo("/user-agent", .get, own.map { [.userAgent: $0] } ?? [:])
        #expect(echo["user-agent"]?.text == own ?? "session/1")
    }

    @Test("a manager is not affected by a later change of the configuration")
    func copied() async throws {
        var configuration = SessionConfiguration()
        configuration.userAgent = "before"
        let manager = try SessionManager(configuration: configuration)
        configuration.userAgent = "after"
        let echo = try await manager.request(client.url("/user-agent")).decoded(as: JSONValue.self)
        #expect(echo["user-agent"]?.text == "before")
    }

    // MARK: Starting

    @Test("a request starts with its first handler", arguments: ["handler", "value", "body", "progress", "resume"])
    func starts(_ trigger: String) async throws {
        let request = manager.request(client.url("/get"))
        #expect(request.task == nil)
        switch trigger {
        case "handler":
            await withCheckedContinuation { continuation in request.response { _ in continuation.resume() } }
        case "value": _ = try await request.value
        case "body": for try await _ in request.body {}
        case "progress": for await _ in request.progress {}
        default: _ = await request.resume().outcome
        }
        #expect(request.task?.state == .completed)
    }

    @Test("a manager may leave the start of its requests to the program")
    func startedByHand() async throws {
        let client = try await Client(startRequestsImmediately: false)
        let ended = Record<Int?>()
        let request = client.manager.request(client.url("/get")).response(queue: .inline) { ended.add($0.head?.status) }
        // Another request of the session runs from its beginning to its end meanwhile.
        _ = await client.manager.request(client.url("/get")).resume().outcome
        #expect(request.task == nil && ended.count == 0)
        _ = await request.resume().outcome
        #expect(ended.all == [200])
    }

    @Test("requests of each kind can be started by hand", arguments: ["download", "upload", "form"])
    func kindsByHand(_ kind: String) async throws {
        let client = try await Client(startRequestsImmediately: false)
        let directory = try TemporaryDirectory()
        switch kind {
        case "download":
            let request = client.manager.download(client.url("/range/10"), to: directory.file("file"))
            #expect(await request.resume().outcome.error == nil)
        case "upload":
            #expect(await client.manager.upload(.text("a"), with: client.url("/post")).resume().outcome.status == 200)
        default:
            let request = client.manager.upload(with: client.url("/post")) { $0.append("b", name: "a") }
            #expect(await request.resume().outcome.status == 200)
        }
    }

    // MARK: Ending

    @Test("releasing a manager cancels its requests, and their handlers run", arguments: [1, 10])
    func released(_ count: Int) async throws {
        var manager: SessionManager? = try SessionManager(configuration: .test())
        let requests = (0..<count).compactMap { _ in manager?.request(client.url("/delay/10")).resume() }
        let codes = Record<TransferError.Code?>()
        for request in requests { request.response(queue: .inline) { codes.add($0.error?.code) } }
        manager = nil
        for request in requests { _ = await request.outcome }
        #expect(codes.all == Array(repeating: .cancelled, count: count))
    }

    @Test("a manager with a cancelled request is released")
    func releasedCancelled() async throws {
        weak var reference: SessionManager?
        let request: DataRequest
        do {
            let manager = try SessionManager(configuration: .test())
            reference = manager
            request = manager.request(client.url("/delay/10")).resume()
            request.cancel()
        }
        #expect(reference == nil)
        #expect(await request.outcome.code == .cancelled)
    }

    @Test("a manager without requests is released, and so is its session")
    func releasedSession() async throws {
        weak var session: Session?
        weak var delegate: SessionDelegate?
        let ended = AsyncStream.makeStream(of: Void.self)
        do {
            let manager = try SessionManager(configuration: .test())
            (session, delegate) = (manager.session, manager.delegate)
            manager.delegate.sessionDidBecomeInvalid = { _, _ in ended.continuation.finish() }
            _ = await manager.request(client.url("/get")).outcome
        }
        for await _ in ended.stream {}
        try await eventually(that: "the session is released", within: .seconds(20)) {
            session == nil && delegate == nil
        }
    }

    @Test("a session that is invalidated cancels its requests and takes no more")
    func invalidated() async throws {
        let request = manager.request(client.url("/delay/10")).resume()
        let errors = Record<TransferError?>()
        manager.delegate.sessionDidBecomeInvalid = { _, error in errors.add(error) }
        manager.session.invalidateAndCancel()
        #expect(await request.outcome.code == .cancelled)
        #expect(await manager.request(client.url("/get")).outcome.code == .invalidated)
        #expect(errors.count == 1)
    }

    @Test("a session that finishes its tasks lets them end and takes no more")
    func finished() async throws {
        let request = manager.request(client.url("/range/50000?chunk_size=1000"))
        for await progress in request.progress where progress.completedBytes > 0 { break }
        manager.session.finishTasksAndInvalidate()
        #expect(await manager.request(client.url("/get")).outcome.code == .invalidated)
        #expect(await request.outcome.data?.count == 50_000)
    }

    @Test("the handler for the end of all events is called after the last handler", arguments: [1, 5])
    func finishedEvents(_ count: Int) async throws {
        let order = Record<String>()
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        manager.backgroundCompletionHandler = {
            order.add("all")
            continuation.yield()
        }
        let requests = (0..<count).map { _ in manager.request(client.url("/get")) }
        // All are under way before the first can end.
        let first = manager.request(client.url("/delay/10")).resume()
        for request in requests { request.response { _ in order.add("one") } }
        for request in requests { _ = await request.outcome }
        first.cancel()
        for await _ in stream { break }
        #expect(order.all == Array(repeating: "one", count: count) + ["all"])
    }

    @Test("events tell the life of a request")
    func events() async throws {
        let events = manager.session.events.stream()
        let request = manager.request(client.url("/delay/10")).resume().suspend().resume().cancel()
        _ = await request.outcome
        manager.session.invalidateAndCancel()
        var names: [String] = []
        for await event in events {
            #expect(event.request === request)
            switch event {
            case .didResume: names.append("resume")
            case .didSuspend: names.append("suspend")
            case .didCancel: names.append("cancel")
            case .willRetry: names.append("retry")
            case .didComplete(_, let error): names.append("complete \(error?.code.rawValue ?? "")")
            }
        }
        #expect(names == ["resume", "suspend", "resume", "cancel", "complete cancelled"])
    }

    // MARK: Limits

    @Test("the number of connections to a host can be limited", arguments: [1, 3])
    func connections(_ limit: Int) async throws {
        let client = try await Client { $0.maximumConnectionsPerHost = limit }
        let running = Mutex((now: 0, most: 0))
        client.manager.delegate.dataTaskDidReceiveResponse = { _, _ in
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            return .allow
        }
        client.manager.delegate.taskDidFinishCollectingMetrics = { _, _ in running.withLock { $0.now -= 1 } }
        let requests = (0..<9).map { _ in client.manager.request(client.url("/range/1000")).resume() }
        for request in requests { #expect(await request.outcome.error == nil) }
        #expect(running.withLock { $0.most } <= limit)
    }

    @Test("denied networks are not contacted")
    func denied() async throws {
        let loopback = IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)
        let client = try await Client { $0.deniedNetworks = [loopback] }
        #expect(await client.manager.request(client.url("/get")).outcome.code == .addressNotAllowed)
    }

    // MARK: Streams

    @Test("a raw connection speaks to the server", arguments: ["127.0.0.1", "localhost"])
    func stream(_ host: String) async throws {
        let stream = manager.stream(host: host, port: client.server.port)
        try await stream.write(Array("GET /get?a=b HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8))
        var bytes: [UInt8] = []
        for try await byte in stream.bytes { bytes.append(byte) }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.contains("\"a\":\"b\""))
        stream.cancel()
    }
}
