import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Requests over all their attempts")
struct RequestTests {
    private let place: Place
    private let manager: SessionManager

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func download(_ url: String, _ name: String = "file") -> DownloadRequest {
        manager.download(TransferRequest(url: url), to: place.target(name, part: ".\(name).part"))
    }

    @Test("a request is there at once whatever is wrong with it, and its handlers hear of it")
    func failureArrives() async {
        let request = download("no URL at all")
        #expect(request.original?.url == "no URL at all")
        #expect(await request.outcome.result.error?.code == .invalidRequest)
        #expect(request.description == "GET no URL at all")
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("a limit that is set before the start is there before the first byte")
    func limitBeforeStart() throws {
        /// Notes which limit it has when it starts, and does nothing.
        final class IdleTask: SessionTask {
            let identifier = 0
            let state = SessionTaskState.suspended
            let originalRequest: TransferRequest
            let progress = TransferProgress()
            let metrics = TransferMetrics()
            let rateAtStart = Mutex<Int64?>(nil)
            private let rate: Atomic<Int64>

            init(_ request: TransferRequest) {
                originalRequest = request
                rate = Atomic(request.maximumRate ?? 0)
            }

            var currentRequest: TransferRequest { originalRequest }
            var response: ResponseHead? { nil }
            var error: TransferError? { nil }
            var priority: Double {
                get { 0.5 }
                set {}
            }
            var maximumRate: Int64? {
                get { rate.load(ordering: .relaxed) }
                set { rate.store(newValue ?? 0, ordering: .relaxed) }
            }
            func resume() { rateAtStart.withLock { $0 = maximumRate } }
            func suspend() {}
            func cancel() {}
        }
        let notes = Notes<IdleTask>()
        let manager = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let request = Request(
            .success(TransferRequest(url: "http://127.0.0.1/")), delegate: TaskDelegate(), progress: TransferProgress(),
            manager: manager
        ) {
            let task = IdleTask($0)
            notes.add(task)
            return task
        }
        request.limit(to: 7).resume()
        #expect(notes.all.map { $0.rateAtStart.withLock { $0 } } == [7])
        request.limit(to: 9)
        #expect(notes.all.map(\.maximumRate) == [9])
        request.cancel()
    }

    @Test("handlers run in their order, and a late one at once")
    func handlers() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let manager = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let notes = Notes<Int>()
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        for number in 0..<10 { request.response { _ in notes.add(number) } }
        // A handler that another one adds runs after all handlers that existed before.
        request.response { _ in request.response { _ in notes.add(11) } }
        request.response { _ in notes.add(10) }
        #expect(notes.all.isEmpty && server.requests().isEmpty)
        request.resume()
        request.resume()
        _ = await request.outcome
        try await eventually(that: "all have run") { notes.all.count == 12 }
        #expect(notes.all == Array(0..<12))
        request.response(queue: .inline) { _ in notes.add(12) }
        try await eventually(that: "the late one has run") { notes.all == Array(0..<13) }
        #expect(server.requests().count == 1)
    }

    @Test("a handler that comes in the very moment of the completion is not lost")
    func handlerRace() async throws {
        final class Race: Sendable {
            let delegate = UploadTaskDelegate()
            private let ready = Atomic<Int>(0)

            /// Releases two threads at the same moment.
            func meet() {
                ready.wrappingAdd(1, ordering: .sequentiallyConsistent)
                while ready.load(ordering: .sequentiallyConsistent) < 2 { sched_yield() }
            }
        }
        let races = (0..<100_000).map { _ in Race() }
        let heard = Notes<Int>()
        await withCheckedContinuation { continuation in
            let other = Race()
            do {
                try startThread {
                    for race in races {
                        race.meet()
                        race.delegate.complete(error: nil)
                    }
                    other.meet()
                    continuation.resume()
                }
                try startThread {
                    for (number, race) in races.enumerated() {
                        race.meet()
                        // The moment differs each time.
                        for _ in 0..<(number % 64) { _ = race.delegate.isCancelled }
                        race.delegate.queue.add(on: .inline) { heard.add(number) }
                    }
                    other.meet()
                }
            } catch {
                Issue.record(error)
            }
        }
        #expect(heard.all.sorted() == Array(0..<100_000))
    }

    // MARK: Adapter and retrier

    private struct Tokens: RequestAdapter {
        let count = Counter()
        final class Counter: Sendable { let value = Atomic<Int>(0) }

        func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
            let number = count.value.wrappingAdd(1, ordering: .relaxed).newValue
            if number == 4 { throw TransferError(.internal, "no more tokens") }
            var request = request
            request.headerFields[.authorization] = "Bearer \(number)"
            await Task.yield()
            return request
        }
    }

    @Test("the adapter is asked before each attempt, the retrier after each failure with its count")
    func adapterAndRetrier() async throws {
        let server = try ScriptedServer(["/f": [.status(500), .status(503), .status(200, body: "abc")]])
        let retrier = CountingRetrier(limit: 5)
        manager.adapter = Tokens()
        manager.retrier = retrier
        let request = download(server.url("/f"))
        #expect(try await request.value.size == 3)
        #expect(server.requests().map { $0.header("authorization") } == ["Bearer 1", "Bearer 2", "Bearer 3"])
        #expect(retrier.asked.withLock { $0.map(\.retryCount) } == [0, 1])
        #expect(request.retryCount == 2)
        #expect(request.description == "GET \(server.url("/f")) (200)")
    }

    private final class SlowAdapter: RequestAdapter {
        let asked = Notes<Bool>()
        private let isOpen = Atomic<Bool>(false)

        func open() { isOpen.store(true, ordering: .releasing) }

        func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest {
            asked.add(true)
            while !isOpen.load(ordering: .acquiring) { await Task.yield() }
            return request
        }
    }

    @Test("a second start while the adapter is still at work makes no second attempt")
    func startedTwice() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let adapter = SlowAdapter()
        manager.adapter = adapter
        let request = download(server.url("/f"))
        request.resume()
        request.resume()
        adapter.open()
        #expect(try await request.value.size == 3)
        #expect(adapter.asked.all.count == 1)
        #expect(server.requests().count == 1)
    }

    @Test("where the adapter cannot, the retrier is asked with its reason, and the request fails with it")
    func adapterFails() async throws {
        let server = try ScriptedServer(["/f": [.status(500)]])
        manager.adapter = Tokens()
        let retrier = CountingRetrier(limit: 3)
        manager.retrier = retrier
        let outcome = await download(server.url("/f")).outcome
        #expect(outcome.result.error?.code == .internal)
        #expect(retrier.asked.withLock { $0.map(\.code) } == [.httpStatus, .httpStatus, .httpStatus, .internal])
        #expect(server.requests().count == 3)
    }

    @Test("a retrier that has had enough leaves the last failure")
    func retrierEnds() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        manager.retrier = CountingRetrier(limit: 2)
        let request = download(server.url("/f"))
        #expect(await request.outcome.result.error?.httpStatus == 503)
        #expect(server.requests().count == 3)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("the delay that the retrier names is kept to")
    func delay() async throws {
        let server = try ScriptedServer(["/f": [.status(503), .status(200, body: "abc")]])
        manager.retrier = CountingRetrier(limit: 1, delay: 200)
        let begin = ContinuousClock.now
        _ = try await download(server.url("/f")).value
        #expect(ContinuousClock.now - begin >= .milliseconds(199))
    }

    @Test(
        "cancelled while it waits for its next attempt, a request completes without waiting on", .timeLimit(.minutes(1))
    )
    func cancelInDelay() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let retrier = CountingRetrier(limit: 9, delay: 3_600_000)
        manager.retrier = retrier
        let request = download(server.url("/f")).resume()
        try await eventually(that: "the retrier was asked") { retrier.asked.withLock { !$0.isEmpty } }
        request.cancel()
        #expect(await request.outcome.result.error?.code == .cancelled)
        #expect(server.requests().count == 1)
    }

    @Test("cancelled before it began, a request completes, and a later start changes nothing", .timeLimit(.minutes(1)))
    func cancelBeforeStart() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let manager = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        request.cancel()
        #expect(await request.outcome.result.error?.code == .cancelled)
        request.resume()
        _ = await request.outcome
        #expect(server.requests().isEmpty)
        #expect(manager.delegate.requestCount == 0)
    }

    // MARK: The delegate

    @Test(
        "suspended and resumed by several at once, a request goes on when it is resumed last", .timeLimit(.minutes(2)))
    func suspendedAndResumed() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        for _ in 0..<300 {
            let request = manager.request(server.url("/f")).resume()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    group.addTask { request.suspend() }
                    group.addTask { request.resume() }
                }
            }
            request.resume()
            let ended = Notes<Bool>()
            request.response { _ in ended.add(true) }
            try await eventually(that: "it ends", within: .seconds(20), every: .milliseconds(1)) { !ended.all.isEmpty }
        }
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("an adapter that fails at once does not keep the wait for the next attempt from being cut short")
    func retriedByHand() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        let adapted = Notes<Int>()
        manager.adapter = ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
            adapted.add(1)
            if adapted.all.count == 1 { throw TransferError(.timedOut, "not now") }
        }
        manager.retrier = ClosureRetrier { _, _ in .retry(after: 3_000_000) }
        let request = manager.request(server.url("/f")).resume()
        try await eventually(that: "it waits") { manager.retry(request) }
        #expect(await request.outcome.head?.status == 200)
    }

    @Test("closures that override take the place of the default")
    func overrides() async throws {
        let server = try ScriptedServer(["/f": [.redirect("/g")], "/g": [.status(200, body: "abc")]])
        let outcomes = Notes<Bool>()
        let redirects = Notes<String>()
        let handled = Notes<Bool>()
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, to in
            redirects.add(to.url)
            return to
        }
        manager.delegate.taskDidComplete = { task, error in outcomes.add(error == nil && task.error == nil) }
        let request = download(server.url("/f")).response(queue: .inline) { _ in handled.add(true) }
        _ = await request.outcome
        #expect(outcomes.all == [true])
        #expect(redirects.all == [server.url("/g")])
        #expect(handled.all == [true])
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("a redirect that the delegate does not want is not followed")
    func refusedRedirect() async throws {
        let server = try ScriptedServer(["/f": [.redirect("/g")]])
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _ in nil }
        #expect(await download(server.url("/f")).outcome.result.error?.httpStatus == 302)
        #expect(server.requests(for: "/g").isEmpty)
    }

    @Test("a manager refuses a session that reports to another")
    func foreignDelegate() throws {
        #expect(SessionManager(session: manager.session, delegate: SessionDelegate()) == nil)
        #expect(SessionManager(session: manager.session, delegate: manager.delegate) != nil)
    }

    @Test("1,000 requests, however quick, all find their handlers, and leave nothing behind")
    func thousand() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")], "/gone": [.status(404)]])
        let finished = Notes<Bool>()
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<20 {
                group.addTask {
                    for number in 0..<50 {
                        let url =
                            switch number % 10 {
                            case 8: server.url("/gone")
                            case 9: "no URL"
                            default: server.url("/f")
                            }
                        let outcome = await download(url, "f-\(lane)-\(number)").outcome
                        finished.add(outcome.result.error == nil)
                    }
                }
            }
        }
        #expect(finished.all.count == 1000)
        #expect(finished.all.count { $0 } == 800)
        #expect(manager.delegate.requestCount == 0)
        #expect(place.names.count == 800)
        // Only the directory itself remains open: the publisher's thread reports a file before it closes it.
        try await eventually(that: "only the directory is open", within: .seconds(5)) {
            openDescriptors(beneath: place.temporary.path) == 1
        }
    }
}
