import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Adapters and retriers together")
struct InterceptorTests {
    private let manager: SessionManager
    private let server: ScriptedServer

    init() throws {
        manager = try SessionManager(configuration: .test())
        server = try ScriptedServer(["/f": [.status(503), .status(200, body: "abc")], "/down": [.status(500)]])
    }

    private func adding(_ word: String) -> ClosureAdapter {
        ClosureAdapter { (request: inout TransferRequest) throws(TransferError) in
            request.headerFields[.accept] = (request.headerFields[.accept] ?? "") + word
        }
    }

    @Test("each adapter of a chain gets what the one before it made, and the first that cannot ends it")
    func adapters() async throws {
        let chain = AdapterChain([adding("a"), AdapterChain([adding("b"), adding("c")]), adding("d")])
        #expect(try await chain.adapt(TransferRequest(url: "u")).headerFields[.accept] == "abcd")
        let asked = Notes<Int>()
        let broken = AdapterChain([
            ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in throw .cancelled },
            ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in asked.add(1) },
        ])
        await #expect(throws: TransferError.cancelled) { _ = try await broken.adapt(TransferRequest(url: "u")) }
        #expect(asked.all.isEmpty)
    }

    @Test("the first retrier of a chain that has an opinion is the last that is asked")
    func retriers() async throws {
        let asked = Notes<Int>()
        func retrier(_ number: Int, _ decision: RetryDecision) -> ClosureRetrier {
            ClosureRetrier { _, _ in
                asked.add(number)
                return decision
            }
        }
        let request = manager.request(server.url("/f"))
        let chain = RetrierChain([
            retrier(1, .doNotRetry), RetrierChain([retrier(2, .doNotRetry), retrier(3, .retry(after: 5))]),
            retrier(4, .fail(.cancelled)),
        ])
        #expect(await chain.retry(request, after: .cancelled) == .retry(after: 5))
        #expect(asked.all == [1, 2, 3])
        #expect(await RetrierChain([]).retry(request, after: .cancelled) == .doNotRetry)
    }

    private struct Listener: RequestRetrier {
        let ends = Notes<Int?>()

        func retry(_ request: Request, after error: TransferError) async -> RetryDecision { .doNotRetry }

        func attemptDidEnd(of request: Request, with error: TransferError?) { ends.add(error?.httpStatus) }
    }

    @Test("retriers hear of each attempt's end, in a chain too")
    func ends() async throws {
        let listener = Listener()
        let again = ClosureRetrier { _, error in error.httpStatus == 503 ? .retry(after: 0) : .doNotRetry }
        manager.intercept(with: Interceptor(retriers: [RetrierChain([listener]), again]))
        _ = try await manager.request(server.url("/f")).validate().value
        #expect(listener.ends.all == [503, nil])
    }

    @Test("a request's own adapter and retrier come before the manager's")
    func own() async throws {
        manager.adapter = adding("manager")
        let asked = Notes<String>()
        manager.retrier = ClosureRetrier { _, _ in
            asked.add("manager")
            return .doNotRetry
        }
        let request = manager.request(server.url("/f")).validate().adapt(with: adding("own,")).retry(
            with: ClosureRetrier { request, _ in
                asked.add("own")
                return request.retryCount == 0 ? .retry(after: 0) : .doNotRetry
            })
        #expect(try await request.string == "abc")
        #expect(server.requests().map { $0.header("accept") } == ["own,manager", "own,manager"])
        _ = await manager.request(server.url("/down")).validate().outcome
        #expect(asked.all == ["own", "manager"])
    }

    @Test("K3: an adapter's own error is the attempt's, and may be retried")
    func adapterFails() async throws {
        let attempts = Atomic<Int>(0)
        manager.adapter = ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
            if attempts.wrappingAdd(1, ordering: .relaxed).newValue < 3 { throw TransferError(.io, "no key") }
        }
        manager.retrier = CountingRetrier(limit: 5)
        let request = manager.request(server.url("/f"))
        #expect(await request.outcome.head?.status == 503)
        #expect(request.retryCount == 2 && server.requests().count == 1)
    }
}
