import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("The retrier that comes with the library")
struct DefaultRetrierTests {
    private let manager: SessionManager
    private let place: Place
    private static let quick = RetryPolicy(attempts: 4, baseDelay: 1, maximumDelay: 2)

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try Place()
    }

    private func retrier(
        _ policy: RetryPolicy = quick, clock: RetryClock = .system, network: NetworkWaiting = .reachable,
        _ generator: any RandomNumberGenerator & Sendable = SmallestGenerator()
    ) -> DefaultRetrier {
        DefaultRetrier(policy: policy, clock: clock, network: network, generator: generator)
    }

    @Test("K5, K6: a status that validation refuses is tried again, as often as the policy says")
    func attempts() async throws {
        let server = try ScriptedServer(["/f": [.status(502)], "/ok": [.status(503), .status(500), .status(200)]])
        manager.intercept(with: retrier(RetryPolicy(attempts: 3, baseDelay: 1, maximumDelay: 2)))
        let request = manager.request(server.url("/f")).validate()
        #expect(await request.outcome.error?.httpStatus == 502)
        #expect(server.requests(for: "/f").count == 3 && request.retryCount == 2)
        #expect(await manager.request(server.url("/ok")).validate().outcome.head?.status == 200)
        #expect(server.requests(for: "/ok").count == 3)
    }

    @Test("a failure that two of them hear of counts once")
    func twice() async throws {
        let server = try ScriptedServer(["/f": [.status(502)]])
        manager.intercept(with: retrier(RetryPolicy(attempts: 5, baseDelay: 1, maximumDelay: 2)))
        let own = retrier(RetryPolicy(attempts: 2, baseDelay: 1, maximumDelay: 2))
        let request = manager.request(server.url("/f")).validate().retry(with: own)
        #expect(await request.outcome.error?.httpStatus == 502)
        #expect(server.requests().count == 5)
    }

    @Test("what does not help is not repeated", arguments: [400, 401, 403, 404, 501])
    func never(status: Int) async throws {
        let server = try ScriptedServer(["/f": [.status(status)]])
        manager.intercept(with: retrier())
        #expect(await manager.request(server.url("/f")).validate().outcome.error?.httpStatus == status)
        #expect(server.requests().count == 1)
    }

    @Test("a POST is repeated where the server did not act on it, and not where it may have")
    func post() async throws {
        let server = try ScriptedServer(["/503": [.status(503), .status(201)], "/500": [.status(500)]])
        manager.intercept(with: retrier())
        func send(_ path: String) -> UploadRequest {
            manager.upload(.data([1, 2, 3]), with: TransferRequest(url: server.url(path), method: .post)).validate()
        }
        #expect(await send("/503").outcome.head?.status == 201)
        #expect(await send("/500").outcome.error?.httpStatus == 500)
        #expect(server.requests(for: "/500").count == 1)
    }

    @Test("a POST whose connection was refused is repeated, one whose connection broke after it was sent is not")
    func postConnections() async throws {
        manager.intercept(with: retrier(RetryPolicy(attempts: 3, baseDelay: 1, maximumDelay: 2)))
        // A port on which only privileged processes can listen.
        let refused = manager.upload(.data([1]), with: TransferRequest(url: "http://127.0.0.1:1/", method: .post))
        #expect(await refused.outcome.error?.code == .cannotConnect)
        #expect(refused.retryCount == 2)
        // A server that reads the request and closes without a response.
        let server = try RawServer([[]])
        let broken = manager.request(TransferRequest(url: server.url(), method: .post))
        #expect(await broken.outcome.error != nil)
        #expect(broken.retryCount == 0)
        #expect(await manager.request(server.url()).outcome.error != nil)
        #expect(server.requests.count == 1 + 3)
    }

    @Test("M17: a download that gets on is tried again as often as it takes, from where it was")
    func progress() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer([
            "/f": (0..<8).map { _ in .serveThenCut(resource, after: 30_000) } + [.serve(resource)]
        ])
        manager.intercept(with: retrier(RetryPolicy(attempts: 2, baseDelay: 1, maximumDelay: 2)))
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
        #expect(request.retryCount == 8)
        #expect(server.requests().dropFirst().allSatisfy { $0.header("range") != nil })
    }

    @Test("a body that comes anew each time is no progress")
    func noProgress() async throws {
        let server = try ScriptedServer(["/f": [.status(503, body: String(repeating: "sorry ", count: 1000))]])
        manager.intercept(with: retrier(RetryPolicy(attempts: 3, baseDelay: 1, maximumDelay: 2)))
        #expect(await manager.request(server.url("/f")).validate().outcome.error?.httpStatus == 503)
        #expect(server.requests().count == 3)
    }

    @Test("Retry-After is kept to, with the jitter above it, and holds other requests for the host too")
    func retryAfter() async throws {
        let server = try ScriptedServer([
            "/f": [.status(429, headers: ["Retry-After: 1000"])], "/g": [.status(200, body: "g")],
        ])
        let time = ManualRetryClock()
        let retrier = retrier(
            RetryPolicy(attempts: 4, baseDelay: 500, maximumDelay: 800), clock: time.clock, LargestGenerator())
        manager.intercept(with: retrier)
        let noted = Notes<RetryDecision>()
        let request = manager.request(server.url("/f")).validate()
        // This retrier asks the real one and then stops, instead of waiting a thousand seconds.
        manager.retrier = ClosureRetrier { request, error in
            retrier.attemptDidEnd(of: request, with: error)
            noted.add(await retrier.retry(request, after: error))
            return .doNotRetry
        }
        _ = await request.outcome
        guard case .retry(let delay)? = noted.all.first else { return #expect(Bool(false)) }
        #expect((1_000_000...1_000_500).contains(delay))
        let other = manager.request(server.url("/g")).resume()
        try await eventually(that: "the other waits") { time.sleeping == 1 }
        #expect(server.requests(for: "/g").isEmpty)
        time.advance(milliseconds: 1_000_000)
        #expect(try await other.string == "g")
    }

    @Test("a request that waits for its host can be cancelled, and nothing stays behind", .timeLimit(.minutes(1)))
    func cancelledInHold() async throws {
        let server = try ScriptedServer(["/f": [.status(503, headers: ["Retry-After: 5000"])]])
        let time = ManualRetryClock()
        let retrier = retrier(clock: time.clock)
        manager.intercept(with: retrier)
        // A server failure counts for the host even without response validation.
        _ = await manager.request(server.url("/f")).outcome
        let request = manager.request(server.url("/f")).resume()
        try await eventually(that: "it waits") { retrier.hosts.count == 1 }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        try await eventually(that: "nobody waits") { retrier.hosts.count == 0 }
        #expect(server.requests().count == 1)
    }

    @Test("F50: a storm of failing requests makes few requests, and none burns attempts behind a breaker")
    func storm() async throws {
        let server = try ScriptedServer(["/f": [.status(500)]])
        let time = ManualRetryClock()
        // More attempts than the number of failures that opens the breaker: no request uses all of them before that.
        let retrier = retrier(RetryPolicy(attempts: 20, baseDelay: 1, maximumDelay: 1), clock: time.clock)
        manager.intercept(with: retrier)
        let requests = (0..<1_000).map { _ in manager.request(server.url("/f")).validate().resume() }
        try await eventually(that: "all wait") { retrier.hosts.count == 1_000 }
        // The requests that were admitted before the breaker opened, once each, and a few retries before that.
        let before = server.requests().count
        #expect(before <= 1_004)
        var moments = 0
        try await eventually(that: "ten probes came and went", every: .milliseconds(5)) {
            time.advance(milliseconds: 1)
            moments += 1
            return server.requests().count >= before + 10
        }
        #expect(server.requests().count <= before + moments)
        #expect(requests.allSatisfy { $0.retryCount <= HostCircuitBreakers.failureLimit + 10 })
        for request in requests { request.cancel() }
    }

    @Test("those who give up waiting for a host's probe let nobody else in", .timeLimit(.minutes(1)))
    func cancelledBehindProbe() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        let host = "http://127.0.0.1:\(server.port)"
        let time = ManualRetryClock()
        let retrier = retrier(clock: time.clock)
        manager.intercept(with: retrier)
        for _ in 0..<HostCircuitBreakers.failureLimit { retrier.hosts.record(.failed, of: host) }
        time.advance(milliseconds: 1000)
        // This entry is the probe.
        try await retrier.hosts.enter(host)
        let requests = (0..<20).map { _ in manager.request(server.url("/f")).resume() }
        try await eventually(that: "all wait") { retrier.hosts.count == 20 }
        for request in requests[..<10] { request.cancel() }
        try await eventually(that: "ten wait") { retrier.hosts.count == 10 && time.sleeping == 10 }
        #expect(server.requests().isEmpty)
        retrier.hosts.record(.alive, of: host)
        for request in requests[10...] { #expect(await request.outcome.head?.status == 200) }
    }

    @Test("without a network a request waits for it, and that burns no attempt")
    func network() async throws {
        let isUp = Atomic<Bool>(false)
        let waits = Notes<Int64>()
        let network = NetworkWaiting(isReachable: { isUp.load(ordering: .sequentiallyConsistent) }) { milliseconds in
            waits.add(milliseconds)
            if waits.all.count == 5 { isUp.store(true, ordering: .sequentiallyConsistent) }
            return true
        }
        let retrier = retrier(RetryPolicy(attempts: 2, baseDelay: 1, maximumDelay: 1), network: network)
        let server = try ScriptedServer(["/f": [.status(200)]])
        manager.retrier = retrier
        manager.adapter = ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
            if waits.all.count < 5 { throw TransferError(.unreachable, "no way") }
        }
        let request = manager.request(server.url("/f")).validate()
        #expect(await request.outcome.head?.status == 200)
        #expect(waits.all == Array(repeating: DefaultRetrier.longestNetworkWait, count: 5))
        #expect(request.retryCount == 5)
    }

    @Test("a network that does not come back, or is there and does not help, ends the trying")
    func networkStaysAway() async throws {
        for isReachable in [true, false] {
            let network = NetworkWaiting(isReachable: { isReachable }) { _ in false }
            manager.retrier = retrier(RetryPolicy(attempts: 3, baseDelay: 1, maximumDelay: 1), network: network)
            manager.adapter = ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
                throw TransferError(.resolverUnavailable, "nobody answers")
            }
            let request = manager.request("http://127.0.0.1/")
            #expect(await request.outcome.error?.code == .resolverUnavailable)
            #expect(request.retryCount == 2)
        }
    }
}
