import Curl
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Tokens that are refreshed")
struct AuthenticationRefresherTests {
    /// An authentication with numbers as tokens; a refresh waits until the gate is open.
    private final class Numbers: TokenAuthentication {
        let refreshes = Atomic<Int>(0)
        private let gate = Atomic<Bool>(true)
        private let failure: TransferError?

        init(failure: TransferError? = nil) { self.failure = failure }

        func close() { gate.store(false, ordering: .sequentiallyConsistent) }
        func open() { gate.store(true, ordering: .sequentiallyConsistent) }
        var count: Int { refreshes.load(ordering: .sequentiallyConsistent) }

        func apply(_ token: Int, to request: inout TransferRequest) {
            request.headerFields[.authorization] = "Bearer \(token)"
        }

        func refresh() async throws -> Int {
            let number = refreshes.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
            while !gate.load(ordering: .sequentiallyConsistent) { await Task.yield() }
            if let failure { throw failure }
            return 100 + number
        }
    }

    private let manager: SessionManager

    init() throws { manager = try SessionManager(configuration: .test()) }

    @Test("a first request without a token waits for one")
    func first() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let numbers = Numbers()
        let refresher = AuthenticationRefresher(numbers)
        manager.intercept(with: refresher)
        #expect(try await manager.request(server.url("/f")).validate().string == "abc")
        #expect(server.requests().first?.header("authorization") == "Bearer 101")
        #expect(numbers.count == 1 && refresher.token == 101)
    }

    @Test("a refresh through the manager whose requests wait for it waits for itself, until its time is over")
    func sameManager() async throws {
        struct Circle: TokenAuthentication {
            let manager: SessionManager
            let url: String

            func apply(_ token: String, to request: inout TransferRequest) { request.credential = .bearer(token) }

            func refresh() async throws -> String {
                try await manager.request(url) { $0.totalTimeout = 100 }.string
            }
        }
        let server = try ScriptedServer(["/token": [.status(200, body: "new")], "/f": [.status(200)]])
        manager.intercept(with: AuthenticationRefresher(Circle(manager: manager, url: server.url("/token"))))
        let error = await manager.request(server.url("/f")).outcome.error
        #expect(error?.code == .authenticationFailed)
        #expect((error?.underlying as? TransferError)?.code == .timedOut)
        #expect(server.requests().isEmpty)
        // They retain each other.
        (manager.adapter, manager.retrier) = (nil, nil)
    }

    /// A retrier that asks the refresher when a number of requests have been refused. Attempts that begin during a
    /// refresh wait for it, so that they would not reach the server.
    private func retrier(_ refresher: any RequestRetrier, refreshingAfter count: Int) -> RetrierChain {
        let gate = RefusedRequests()
        return RetrierChain([
            ClosureRetrier { _, _ in
                gate.count.add(1, ordering: .sequentiallyConsistent)
                while gate.count.load(ordering: .sequentiallyConsistent) < count { await Task.yield() }
                return .doNotRetry
            }, refresher,
        ])
    }

    private final class RefusedRequests: Sendable {
        let count = Atomic<Int>(0)
    }

    @Test("a refresh runs once for all who find the token outdated, and all go on with the new one")
    func once() async throws {
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<50).map { ("/\($0)", [.status(401), .status(200)]) }))
        let numbers = Numbers()
        let refresher = AuthenticationRefresher(numbers, token: 1)
        manager.adapter = refresher
        manager.retrier = retrier(refresher, refreshingAfter: 50)
        let requests = (0..<50).map { manager.request(server.url("/\($0)")).validate().resume() }
        for request in requests { #expect(await request.outcome.head?.status == 200) }
        #expect(numbers.count == 1)
        let tokens = server.requests().map { $0.header("authorization") }
        #expect(tokens.count { $0 == "Bearer 1" } == 50 && tokens.count { $0 == "Bearer 101" } == 50)
    }

    @Test("a request that failed with an older token goes on with the present one, without another refresh")
    func outdated() async throws {
        let server = try ScriptedServer(["/f": [.status(401), .status(200)]])
        let numbers = Numbers()
        let refresher = AuthenticationRefresher(numbers, token: 1)
        let holdsUp = HeldAnswer()
        manager.adapter = refresher
        manager.retrier = RetrierChain([
            ClosureRetrier { _, _ in
                await holdsUp.wait()
                return .doNotRetry
            }, refresher,
        ])
        let request = manager.request(server.url("/f")).validate().resume()
        try await eventually(that: "it was refused") { holdsUp.isAwaited }
        refresher.token = 7
        holdsUp.open()
        #expect(await request.outcome.head?.status == 200)
        #expect(server.requests().last?.header("authorization") == "Bearer 7")
        #expect(numbers.count == 0)
    }

    private final class HeldAnswer: Sendable {
        private let state = Atomic<Int>(0)
        var isAwaited: Bool { state.load(ordering: .sequentiallyConsistent) == 1 }
        func open() { state.store(2, ordering: .sequentiallyConsistent) }
        func wait() async {
            if state.load(ordering: .sequentiallyConsistent) == 0 { state.store(1, ordering: .sequentiallyConsistent) }
            while state.load(ordering: .sequentiallyConsistent) < 2 { await Task.yield() }
        }
    }

    @Test("a refresh that fails fails all who wait, with its reason")
    func failing() async throws {
        let server = try ScriptedServer(["/f": [.status(401)]])
        let numbers = Numbers(failure: TransferError(.tls, "no trust"))
        numbers.close()
        let refresher = AuthenticationRefresher(numbers, token: 1)
        manager.adapter = refresher
        manager.retrier = retrier(refresher, refreshingAfter: 10)
        let requests = (0..<10).map { _ in manager.request(server.url("/f")).validate().resume() }
        try await eventually(that: "the refresh runs") { numbers.count == 1 }
        #expect(server.requests().count == 10)
        numbers.open()
        for request in requests {
            let error = await request.outcome.error
            // A request that came after the failure refreshed once more, with the same failure.
            #expect(error?.code == .authenticationFailed && error?.httpStatus == 401)
            #expect((error?.underlying as? TransferError)?.code == .tls)
        }
        #expect(numbers.count <= RefreshLimit().count)
    }

    @Test("one who waits may be cancelled; the refresh goes on for the others", .timeLimit(.minutes(1)))
    func cancelled() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        let numbers = Numbers()
        numbers.close()
        manager.intercept(with: AuthenticationRefresher(numbers))
        let requests = (0..<10).map { _ in manager.request(server.url("/f")).resume() }
        try await eventually(that: "the refresh runs") { numbers.count == 1 }
        for request in requests.prefix(9) { request.cancel() }
        for request in requests.prefix(9) { #expect(await request.outcome.error?.code == .cancelled) }
        numbers.open()
        #expect(await requests[9].outcome.head?.status == 200)
        #expect(server.requests().count == 1 && numbers.count == 1)
    }

    @Test("cancelled at any moment, everybody hears something once", .timeLimit(.minutes(1)))
    func cancelStorm() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        manager.intercept(with: AuthenticationRefresher(Numbers()))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let request = manager.request(server.url("/f")).resume()
                    for _ in 0..<(number % 20) { await Task.yield() }
                    request.cancel()
                    let error = await request.outcome.error
                    #expect(error == nil || error?.code == .cancelled)
                }
            }
        }
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("a server that refuses every token is not asked for ever")
    func refusing() async throws {
        let server = try ScriptedServer(["/f": [.status(401)]])
        let numbers = Numbers()
        manager.intercept(with: AuthenticationRefresher(numbers, token: 1))
        #expect(await manager.request(server.url("/f")).validate().outcome.error?.httpStatus == 401)
        #expect(server.requests().count == 1 + RefreshLimit.perRequest)
    }

    @Test("tokens are told apart by their number, and refreshes are limited in a window of time")
    func state() {
        var state = TokenState<String>(token: nil, limit: RefreshLimit(count: 2, interval: 1000))
        func kind(_ step: TokenState<String>.Step) -> String {
            switch step {
            case .use(let token, let generation): "\(token)\(generation)"
            case .wait: "wait"
            case .refresh: "refresh"
            case .refuse: "refuse"
            }
        }
        #expect(kind(state.ask(outdated: nil, now: MonotonicTime(0))) == "refresh")
        #expect(kind(state.ask(outdated: nil, now: MonotonicTime(0))) == "wait")
        #expect(kind(state.ask(outdated: 0, now: MonotonicTime(0))) == "wait")
        state.finish("a")
        #expect(kind(state.ask(outdated: nil, now: MonotonicTime(0))) == "a1")
        #expect(kind(state.ask(outdated: 0, now: MonotonicTime(0))) == "a1")
        #expect(kind(state.ask(outdated: 1, now: MonotonicTime(500))) == "refresh")
        state.finish(nil)
        #expect(kind(state.ask(outdated: nil, now: MonotonicTime(500))) == "a1")
        #expect(kind(state.ask(outdated: 1, now: MonotonicTime(999))) == "refuse")
        #expect(kind(state.ask(outdated: 1, now: MonotonicTime(1000))) == "refresh")
        state.finish("b")
        #expect(kind(state.ask(outdated: 1, now: MonotonicTime(1000))) == "b2")
    }
}
