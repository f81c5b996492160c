import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: adapters, retriers and tokens", .timeLimit(.minutes(1)))
struct HTTPBinRetryTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    /// The kinds of requests.
    enum Kind: String, CaseIterable, Sendable { case data, download, upload, form }

    /// Returns a request of a kind, and how it ends.
    private func request(_ kind: Kind, _ path: String) throws -> (
        any ValidatedRequest, @Sendable () async -> TransferError?
    ) {
        switch kind {
        case .data:
            let request = manager.request(client.url(path))
            return (request, { await request.outcome.error })
        case .download:
            let directory = try TemporaryDirectory()
            let request = manager.download(client.url(path), to: directory.file("file"))
            return (
                request,
                { [directory] in
                    defer { withExtendedLifetime(directory) {} }
                    return await request.outcome.error
                }
            )
        case .upload:
            let request = manager.upload(.text("text"), with: client.request(path, .put))
            return (request, { await request.outcome.error })
        case .form:
            let request = manager.upload(with: client.request(path, .put)) { $0.append("b", name: "a") }
            return (request, { await request.outcome.error })
        }
    }

    private static let unadapted = TransferError(.authenticationFailed, "no token")

    // MARK: Adapters

    @Test("the manager's adapter changes each kind of request", arguments: Kind.allCases)
    func adapter(_ kind: Kind) async throws {
        let adapter = PathAdapter(client, "/anything")
        manager.adapter = adapter
        let (request, end) = try request(kind, "/status/404")
        request.validate()
        #expect(await end() == nil && adapter.adapted.count == 1)
        #expect(request.original?.url == client.url("/status/404") && request.request?.url == client.url("/anything"))
    }

    @Test("a request's own adapter is called before the manager's")
    func ownAdapter() async throws {
        let name = try #require(HTTPField.Name("X-Order"))
        func adapter(_ text: String) -> ClosureAdapter {
            ClosureAdapter { $0.headerFields[name] = ($0.headerFields[name] ?? "") + text }
        }
        manager.adapter = adapter("b")
        let echo = try await manager.request(client.url("/headers")).adapt(with: adapter("a")).decoded(
            as: JSONValue.self)
        #expect(echo.field("X-Order") == "ab")
    }

    @Test("adapters in a chain are called in order", arguments: [1, 2, 5])
    func chain(_ count: Int) async throws {
        let name = try #require(HTTPField.Name("X-Order"))
        manager.adapter = AdapterChain(
            (0..<count).map { number in
                ClosureAdapter { $0.headerFields[name] = ($0.headerFields[name] ?? "") + String(number) }
            })
        #expect(try await client.echo("/headers").field("X-Order") == (0..<count).map(String.init).joined())
    }

    @Test("an error of the adapter is the error of each kind of request", arguments: Kind.allCases)
    func adapterFails(_ kind: Kind) async throws {
        manager.adapter = ClosureAdapter { (_) async throws(TransferError) in throw Self.unadapted }
        let (request, end) = try request(kind, "/anything")
        #expect(await end() == Self.unadapted && request.task == nil && request.metrics.exchanges.isEmpty)
    }

    @Test("an adapter may wait")
    func waitingAdapter() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        manager.adapter = ClosureAdapter { request in
            for await path in stream {
                request.url = path
                break
            }
        }
        let request = manager.request(client.url("/status/404")).validate().resume()
        continuation.yield(client.url("/get"))
        #expect(await request.outcome.error == nil)
    }

    @Test("a request that waits for its adapter can be cancelled")
    func cancelledAdapter() async throws {
        let (stream, _) = AsyncStream.makeStream(of: Void.self)
        manager.adapter = ClosureAdapter { _ in for await _ in stream {} }
        let request = manager.request(client.url("/get")).resume()
        #expect(await request.cancel().outcome.code == .cancelled)
    }

    @Test("the adapter is taken away by nil")
    func removedAdapter() async throws {
        manager.adapter = PathAdapter(client, "/status/404")
        manager.adapter = nil
        #expect(await manager.request(client.url("/get")).validate().outcome.error == nil)
    }

    // MARK: Retriers

    @Test("the manager's retrier is asked about each kind of request", arguments: Kind.allCases)
    func retrier(_ kind: Kind) async throws {
        let retrier = LimitedRetrier(2)
        manager.retrier = retrier
        let (request, end) = try request(kind, "/status/500")
        request.validate()
        #expect(await end()?.httpStatus == 500 && request.retryCount == 2 && request.metrics.exchanges.count == 3)
        #expect(retrier.asked.all.map(\.httpStatus) == [500, 500, 500])
    }

    @Test("another attempt may succeed", arguments: Kind.allCases)
    func succeeds(_ kind: Kind) async throws {
        manager.adapter = PathAdapter(client, "/status/503", "/status/500", "/anything")
        manager.retrier = LimitedRetrier(5)
        let (request, end) = try request(kind, "/anything")
        request.validate()
        #expect(await end() == nil && request.retryCount == 2)
        #expect(request.metrics.exchanges.map(\.status) == [503, 500, 200])
    }

    @Test("the retrier is asked about an error of the adapter", arguments: Kind.allCases)
    func adapterRetried(_ kind: Kind) async throws {
        let calls = Record<Int>()
        manager.adapter = ClosureAdapter { (_) async throws(TransferError) in
            calls.add(1)
            if calls.count < 3 { throw Self.unadapted }
        }
        let retrier = LimitedRetrier(5)
        manager.retrier = retrier
        let (request, end) = try request(kind, "/anything")
        #expect(await end() == nil && request.retryCount == 2 && retrier.asked.all == [Self.unadapted, Self.unadapted])
    }

    @Test("an adapter that fails at the second attempt ends the request", arguments: Kind.allCases)
    func adapterFailsLater(_ kind: Kind) async throws {
        let calls = Record<Int>()
        manager.adapter = ClosureAdapter { (_) async throws(TransferError) in
            calls.add(1)
            if calls.count > 1 { throw Self.unadapted }
        }
        manager.retrier = ClosureRetrier { request, error in error == Self.unadapted ? .doNotRetry : .retry(after: 0) }
        let (request, end) = try request(kind, "/status/500")
        request.validate()
        #expect(await end() == Self.unadapted && request.retryCount == 1)
    }

    @Test("without validation, a status is no reason to ask the retrier")
    func unvalidated() async throws {
        let retrier = LimitedRetrier(2)
        manager.retrier = retrier
        #expect(await manager.request(client.url("/status/500")).outcome.error == nil && retrier.asked.count == 0)
    }

    @Test("a request's own retrier is asked before the manager's")
    func ownRetrier() async throws {
        let order = Record<String>()
        manager.retrier = ClosureRetrier { _, _ in
            order.add("manager")
            return .doNotRetry
        }
        let request = manager.request(client.url("/status/500")).validate().retry(
            with: ClosureRetrier { _, _ in
                order.add("own")
                return .doNotRetry
            })
        #expect(await request.outcome.code == .httpStatus && order.all == ["own", "manager"])
    }

    @Test("a retrier may fail the request with another error, and no other is asked")
    func otherError() async throws {
        let asked = LimitedRetrier(3)
        manager.retrier = asked
        let request = manager.request(client.url("/status/500")).validate()
            .retry(with: ClosureRetrier { _, _ in .fail(Self.unadapted) })
        #expect(await request.outcome.error == Self.unadapted && asked.asked.count == 0)
    }

    @Test("the retriers of a chain are asked until one decides", arguments: [0, 1, 2])
    func retrierChain(_ position: Int) async throws {
        let asked = Record<Int>()
        manager.retrier = RetrierChain(
            (0..<3).map { number in
                ClosureRetrier { request, _ in
                    asked.add(number)
                    return number == position && request.retryCount == 0 ? .retry(after: 0) : .doNotRetry
                }
            })
        _ = await manager.request(client.url("/status/500")).validate().outcome
        #expect(asked.all == Array(0...position) + [0, 1, 2])
    }

    @Test("the retrier is told the end of each attempt")
    func attemptEnds() async throws {
        final class Listener: RequestRetrier {
            let ends = Record<Int?>()
            func retry(_ request: Request, after error: TransferError) async -> RetryDecision { .retry(after: 0) }
            func attemptDidEnd(of request: Request, with error: TransferError?) { ends.add(error?.httpStatus) }
        }
        let listener = Listener()
        manager.retrier = listener
        manager.adapter = PathAdapter(client, "/status/502", "/status/503", "/get")
        _ = await manager.request(client.url("/get")).validate().outcome
        #expect(listener.ends.all == [502, 503, nil])
    }

    @Test("a cancelled request is not retried")
    func cancelled() async throws {
        let retrier = LimitedRetrier(3)
        manager.retrier = retrier
        let request = manager.request(client.url("/get"))
        #expect(await request.cancel().outcome.code == .cancelled && retrier.asked.count == 0)
    }

    @Test("a request that waits for its next attempt can be cancelled")
    func cancelledWait() async throws {
        let (asked, signal) = AsyncStream.makeStream(of: Void.self)
        manager.retrier = ClosureRetrier { _, _ in
            signal.yield()
            return .retry(after: 3_600_000)
        }
        let request = manager.request(client.url("/status/500")).validate().resume()
        for await _ in asked { break }
        #expect(await request.cancel().outcome.code == .cancelled)
    }

    @Test("a request that waits for its next attempt can be started at once")
    func byHand() async throws {
        manager.adapter = PathAdapter(client, "/status/500", "/get")
        manager.retrier = ClosureRetrier { _, _ in .retry(after: 3_600_000) }
        let request = manager.request(client.url("/get")).validate().resume()
        while !manager.retry(request) { await Task.yield() }
        #expect(await request.outcome.error == nil && request.retryCount == 1)
    }

    @Test("a request whose body was passed on in pieces is not retried")
    func passedOn() async throws {
        let retrier = LimitedRetrier(3)
        var cut = TransferRequest(url: client.url("/stream-bytes/200000?chunk_size=100"))
        cut.maximumBodySize = 100_000
        let outcome = await manager.request(cut).stream { _ in }.retry(with: retrier).outcome
        #expect(outcome.code == .tooLarge && retrier.asked.count == 0)
    }

    @Test("a request whose body would be passed on is retried if its head is not valid")
    func refusedBeforePassingOn() async throws {
        let (retrier, pieces) = (LimitedRetrier(3), Record<Int>())
        let outcome = await manager.request(client.url("/range/1000")).stream { pieces.add($0.count) }
            .retry(with: retrier).validate { _, _, _ in .failure(OwnError()) }.outcome
        #expect(outcome.code == .validationFailed && retrier.asked.count == 4)
        #expect(pieces.count == 0)
    }

    @Test("events tell each retry")
    func events() async throws {
        let events = manager.session.events.stream()
        manager.adapter = PathAdapter(client, "/status/500", "/status/503", "/get")
        manager.retrier = LimitedRetrier(5)
        _ = await manager.request(client.url("/get")).validate().outcome
        var names: [String] = []
        for await event in events {
            switch event {
            case .didResume: names.append("resume")
            case .willRetry(_, let error): names.append("retry \(error.httpStatus ?? 0)")
            case .didComplete(_, let error): names.append(error == nil ? "done" : "failed")
            default: names.append("other")
            }
            if case .didComplete = event { break }
        }
        #expect(names == ["resume", "retry 500", "retry 503", "done"])
    }

    // MARK: The default retrier

    private func defaultRetrier(_ attempts: Int) -> DefaultRetrier {
        DefaultRetrier(policy: RetryPolicy(attempts: attempts, baseDelay: 1, maximumDelay: 2))
    }

    @Test("the default retrier repeats what may pass", arguments: [408, 425, 429, 500, 502, 503, 504, 520])
    func repeated(_ status: Int) async throws {
        manager.intercept(with: defaultRetrier(3))
        let outcome = await manager.request(client.url("/status/\(status)")).validate().outcome
        #expect(outcome.error?.httpStatus == status && outcome.metrics.exchanges.count == 3)
    }

    @Test("the default retrier does not repeat what stays", arguments: [400, 401, 403, 404, 405, 410, 418, 501])
    func notRepeated(_ status: Int) async throws {
        manager.intercept(with: defaultRetrier(3))
        let outcome = await manager.request(client.url("/status/\(status)")).validate().outcome
        #expect(outcome.error?.httpStatus == status && outcome.metrics.exchanges.count == 1)
    }

    @Test("the default retrier repeats a failed connection")
    func connection() async throws {
        let port = try FreePort.next()
        manager.intercept(with: defaultRetrier(4))
        let request = manager.request("http://127.0.0.1:\(port)/")
        #expect(await request.outcome.code == .cannotConnect && request.retryCount == 3)
    }

    @Test(
        "the default retrier repeats a request only if the server cannot have acted on it",
        arguments: [
            (.get, 500, true), (.put, 500, true), (.delete, 500, true), (.post, 500, false), (.patch, 502, false),
            (.post, 503, true), (.post, 429, true), (.patch, 408, true),
        ] as [(HTTPRequest.Method, Int, Bool)])
    func safety(_ method: HTTPRequest.Method, _ status: Int, _ isRepeated: Bool) async throws {
        manager.intercept(with: defaultRetrier(2))
        let outcome = await manager.request(client.request("/status/\(status)", method)).validate().outcome
        #expect(outcome.metrics.exchanges.count == (isRepeated ? 2 : 1))
    }

    @Test("more methods can be declared safe to repeat")
    func declared() async throws {
        let policy = RetryPolicy(attempts: 2, baseDelay: 1, maximumDelay: 2)
        manager.intercept(with: DefaultRetrier(policy: policy, methods: [.post]))
        let outcome = await manager.request(client.request("/status/500", .post)).validate().outcome
        #expect(outcome.metrics.exchanges.count == 2)
    }

    // MARK: Tokens

    private final class Tokens: TokenAuthentication {
        let refreshes = Record<Int>()
        private let error: OwnError?

        init(error: OwnError? = nil) {
            self.error = error
        }

        func apply(_ token: String, to request: inout TransferRequest) { request.credential = .bearer(token) }

        func refresh() async throws -> String {
            refreshes.add(1)
            if let error { throw error }
            return "token\(refreshes.count)"
        }
    }

    @Test("a token is fetched before the first request, and once for many", arguments: [1, 10])
    func firstToken(_ count: Int) async throws {
        let tokens = Tokens()
        manager.intercept(with: AuthenticationRefresher(tokens))
        let texts = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<count { group.addTask { try? await client.echo("/bearer")["token"]?.text } }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "token1", count: count) && tokens.refreshes.count == 1)
    }

    @Test("a token that is refused is refreshed, and the request repeated")
    func refreshed() async throws {
        let tokens = Tokens()
        let refresher = AuthenticationRefresher(tokens, token: "old")
        let paths = PathAdapter(client, "/status/401", "/bearer")
        manager.adapter = AdapterChain([refresher, paths])
        manager.retrier = refresher
        let echo = try await manager.request(client.url("/bearer")).validate().decoded(as: JSONValue.self)
        #expect(echo["token"]?.text == "token1" && tokens.refreshes.count == 1 && refresher.token == "token1")
    }

    @Test("a server that refuses each token fails the request after some refreshes")
    func refusedAlways() async throws {
        let tokens = Tokens()
        manager.intercept(with: AuthenticationRefresher(tokens, token: "old"))
        let outcome = await manager.request(client.url("/status/401")).validate().outcome
        #expect(outcome.error?.httpStatus == 401)
        #expect(tokens.refreshes.count == RefreshLimit.perRequest)
    }

    @Test("a refresh that fails is the error of the request")
    func failedRefresh() async throws {
        manager.intercept(with: AuthenticationRefresher(Tokens(error: OwnError())))
        let outcome = await manager.request(client.url("/bearer")).validate().outcome
        #expect(outcome.code == .authenticationFailed && outcome.error?.underlying as? OwnError == OwnError())
    }
}
