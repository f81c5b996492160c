import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Rows of the engine: how requests begin and are tried again")
struct RowsOfAttemptsTests {
    private let manager: SessionManager
    private let place: Place

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try Place()
    }

    @Test("K1: a request is there at once, whatever is wrong: its URL, its encoding, its adapter")
    func atOnce() async {
        struct Broken: ParameterEncoding {
            func encode(_ request: TransferRequest, with parameters: Parameters) throws(TransferError) -> EncodedRequest
            {
                throw TransferError(.invalidRequest, "cannot be encoded")
            }
        }
        #expect(await manager.request("no URL").outcome.error?.code == .invalidRequest)
        let encoded = manager.request("http://127.0.0.1:1/", parameters: ["a": "b"], encoding: Broken())
        #expect(encoded.original == nil)
        #expect(await encoded.outcome.error?.message == "cannot be encoded")
        manager.adapter = ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
            throw TransferError(.permissionDenied, "no key")
        }
        #expect(await manager.request("http://127.0.0.1:1/").outcome.error?.code == .permissionDenied)
        #expect(
            await manager.download("http://127.0.0.1:1/", to: place.target()).outcome.error?.code == .permissionDenied)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("M2: nothing starts before there is a handler, and validators attached before that are not too late")
    func validatorsInTime() async throws {
        let server = try ScriptedServer(["/f": [.status(404)]])
        let request = manager.request(server.url("/f"))
        for _ in 0..<1000 { await Task.yield() }
        #expect(server.connectionsAccepted == 0 && request.task == nil)
        request.validate()
        #expect(await request.outcome.error?.httpStatus == 404)
    }

    @Test("M2: 500 requests with their validators attached at the last moment all fail by them")
    func manyInTime() async throws {
        let server = try ScriptedServer(["/f": [.status(404)]])
        let failed = Notes<Bool>()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<500 {
                group.addTask {
                    let request = manager.request(server.url("/f"))
                    await Task.yield()
                    let outcome = await request.validate().outcome
                    failed.add(outcome.error?.httpStatus == 404)
                }
            }
        }
        #expect(failed.all.count { $0 } == 500)
    }

    @Test("M2: a handler that is attached to a request that stands still does not set it going")
    func suspended() async throws {
        let resource = Resource(size: 2_000_000)
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 100_000)]])
        let request = manager.request(server.url("/f")).resume()
        try await eventually(that: "bytes come") { request.progress.completedBytes > 0 }
        request.suspend()
        request.response { _ in }
        #expect(request.delegate.isSuspended)
        request.cancel()
        _ = await request.outcome
    }

    @Test("M4: a download that is resumed is adapted anew, on each attempt")
    func adaptedResume() async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 100_000), .serveThenCut(resource, after: 100_000), .serve(resource)]
        ])
        let count = Atomic<Int>(0)
        manager.adapter = ClosureAdapter { (request: inout TransferRequest) throws(TransferError) in
            request.headerFields[.authorization] = "Bearer \(count.wrappingAdd(1, ordering: .relaxed).newValue)"
        }
        manager.retrier = CountingRetrier(limit: 1)
        let first = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        let resumeData = try #require(await first.outcome.resumeData)
        let second = manager.download(
            TransferRequest(url: server.url("/f")), to: place.target(), resumingWith: resumeData)
        #expect(resource.difference(fromFileAt: try await second.value.path) == nil)
        let seen = server.requests()
        #expect(seen.map { $0.header("authorization") } == ["Bearer 1", "Bearer 2", "Bearer 3"])
        #expect(seen.map { $0.header("range") != nil } == [false, true, true])
    }

    @Test("K5: the retrier is asked after validation, its delay is kept to, the count rises, the clocks start anew")
    func retrier() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "a"), .status(200, body: "b")]])
        let order = Notes<String>()
        manager.retrier = ClosureRetrier { request, _ in
            order.add("retrier \(request.retryCount)")
            return request.retryCount == 0 ? .retry(after: 150) : .doNotRetry
        }
        let request = manager.request(server.url("/f")).validate { _, _, _ in
            order.add("validator")
            return .failure(TransferError(.internal, "no"))
        }
        let begin = ContinuousClock.now
        #expect(await request.outcome.error?.code == .internal)
        let elapsed = ContinuousClock.now - begin
        #expect(elapsed >= .milliseconds(149))
        #expect(order.all == ["validator", "retrier 0", "validator", "retrier 1"])
        #expect(request.retryCount == 1)
        let exchanges = request.metrics.exchanges
        #expect(exchanges.count == 2 && exchanges[1].began - exchanges[0].began >= 149_000_000)
        // If it were counted from the beginning of the first attempt, its end would be later than the end of both.
        #expect(
            .nanoseconds(exchanges[1].began - exchanges[0].began) + .microseconds(exchanges[1].timeline.ended)
                <= elapsed)
    }

    @Test("M20: the progress is one and the same over all attempts")
    func progress() async throws {
        let resource = Resource(size: 200_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 90_000), .serve(resource)]])
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        let progress = request.progress
        _ = try await request.value
        #expect(request.progress === progress && progress.completedBytes == 200_000)
        #expect((request.delegate as? DownloadTaskDelegate)?.progress === progress)
    }

    @Test(
        "K29: releasing the manager ends requests in every state, those that wait too, and their handlers run",
        .timeLimit(.minutes(1)))
    func release() async throws {
        let server = try ScriptedServer(["/hang": [.hang], "/f": [.status(503)]])
        let codes = Notes<TransferError.Code?>()
        let adapting = Atomic<Bool>(false)
        var requests: [DataRequest] = []
        weak var session: Session?
        do {
            let manager = try SessionManager(configuration: .test())
            session = manager.session
            let retrier = CountingRetrier(limit: 9, delay: 3_600_000)
            manager.retrier = retrier
            requests.append(manager.request(server.url("/hang")))
            requests.append(manager.request(server.url("/f")).validate())
            requests.append(
                manager.request(server.url("/f")).adapt(
                    with: ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
                        adapting.store(true, ordering: .sequentiallyConsistent)
                        try? await Task.sleep(for: .seconds(3600))
                    }))
            for request in requests { request.response { codes.add($0.error?.code) } }
            // A suspended request has a task that no loop knows.
            let isStill = Atomic<Bool>(false)
            let still = manager.request(server.url("/f")).adapt(
                with: ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
                    while !isStill.load(ordering: .sequentiallyConsistent) { await Task.yield() }
                })
            still.response { codes.add($0.error?.code) }
            still.suspend()
            isStill.store(true, ordering: .sequentiallyConsistent)
            requests.append(still)
            try await eventually(that: "all have come as far as they can") {
                server.requests(for: "/hang").count == 1 && retrier.asked.withLock { !$0.isEmpty }
                    && adapting.load(ordering: .sequentiallyConsistent)
            }
        }
        for request in requests { #expect(await request.outcome.error?.code == .cancelled) }
        requests = []
        try await eventually(that: "all handlers ran") { codes.all.count == 4 }
        #expect(codes.all == Array(repeating: .cancelled, count: 4))
        try await eventually(that: "the session is gone") { session == nil }
    }
}
