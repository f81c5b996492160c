import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Defects of the original that must not come back")
struct DefectsOfTheOriginalTests {
    private let manager: SessionManager
    private let place: Place

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try Place()
    }

    @Test(
        "a race on the validators: they are added while others run, and none is lost that was there before the answer")
    func validatorRace() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        for _ in 0..<50 {
            let request = manager.request(server.url("/f")).resume()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { for _ in 0..<20 { request.validate(statusCode: 200..<300) } } }
                group.addTask { #expect(await request.outcome.error == nil) }
            }
        }
    }

    @Test("a race on the task during retry: it is read, suspended and resumed all the while", .timeLimit(.minutes(1)))
    func taskRace() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        manager.retrier = CountingRetrier(limit: 100)
        let request = manager.request(server.url("/f")).validate().resume()
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    while !request.delegate.isComplete {
                        _ = (request.task?.state, request.response?.status, request.description, request.metrics)
                        if lane == 0 { request.suspend().resume() }
                        await Task.yield()
                    }
                }
            }
        }
        request.resume()
        #expect(await request.outcome.error?.httpStatus == 503)
        #expect(request.retryCount == 100 && server.requests().count == 101)
    }

    private final class Weak: Sendable {
        private let list = Mutex<[WeakRequest]>([])
        private struct WeakRequest { weak var request: Request? }
        func add(_ request: Request) { list.withLock { $0.append(WeakRequest(request: request)) } }
        var alive: Int { list.withLock { list in list.count { $0.request != nil } } }
    }

    @Test("requests leaked: with every retry, by validate(), by an overridden completion, by a failed or cancelled one")
    func leaks() async throws {
        let server = try ScriptedServer(["/f": [.status(503)], "/hang": [.hang], "/ok": [.status(200, body: "abc")]])
        let requests = Weak()
        manager.retrier = CountingRetrier(limit: 3, delay: 1)
        func made<R: Request>(_ request: R) -> R {
            requests.add(request)
            return request
        }
        for number in 0..<20 {
            _ = await made(manager.request(server.url("/f"))).validate().outcome
            _ = await made(manager.request(server.url("/ok"))).validate().outcome
            _ = await made(manager.download(server.url("/ok"), to: place.target("\(number)", part: ".\(number).part")))
                .validate().outcome
            _ = await made(manager.request("no URL")).outcome
            let hanging = made(manager.request(server.url("/hang"))).resume()
            hanging.cancel()
            _ = await hanging.outcome
            _ = made(manager.request(server.url("/ok"))).cancel()
            _ = made(manager.request(server.url("/ok")))
        }
        manager.delegate.taskDidComplete = { _, _ in }
        for _ in 0..<20 { _ = await made(manager.request(server.url("/ok"))).validate().outcome }
        #expect(manager.delegate.requestCount == 0)
        try await eventually(that: "none is left", within: .seconds(20)) { requests.alive == 0 }
    }

    @Test("a request cancelled in the moment of its start is not kept for ever", .timeLimit(.minutes(1)))
    func cancelledAtStart() async throws {
        let server = try ScriptedServer(["/ok": [.status(200, body: "abc")]])
        let requests = Weak()
        let idle = Atomic<Int>(0)
        manager.delegate.sessionDidFinishEvents = { _ in idle.wrappingAdd(1, ordering: .relaxed) }
        for _ in 0..<300 {
            let request = manager.request(server.url("/ok"))
            requests.add(request)
            async let starting: Void = { _ = request.resume() }()
            async let ending: Void = { _ = request.cancel() }()
            _ = await (starting, ending)
            _ = await request.outcome
        }
        #expect(manager.delegate.requestCount == 0)
        try await eventually(that: "none is left", within: .seconds(20)) { requests.alive == 0 }
        let before = idle.load(ordering: .relaxed)
        _ = await manager.request(server.url("/ok")).outcome
        try await eventually(that: "the session still goes idle") { idle.load(ordering: .relaxed) == before + 1 }
    }

    @Test(
        "retry after the session was invalidated: the request fails as its last attempt did, at once",
        .timeLimit(.minutes(1)))
    func retryAfterInvalidation() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let retrier = CountingRetrier(limit: 9, delay: 3_600_000)
        manager.retrier = retrier
        let invalid = Notes<Bool>()
        manager.delegate.sessionDidBecomeInvalid = { _, _ in invalid.add(true) }
        let request = manager.request(server.url("/f")).validate().resume()
        try await eventually(that: "it waits") { retrier.asked.withLock { !$0.isEmpty } }
        // The retrier's decision is pending; until then nothing can be interrupted.
        try await eventually(that: "it is over") {
            manager.session.finishTasksAndInvalidate()
            return request.delegate.isComplete
        }
        #expect(await request.outcome.error?.httpStatus == 503)
        #expect(server.requests().count == 1)
        try await eventually(that: "the session has ended") { invalid.all == [true] }
        #expect(await manager.request(server.url("/f")).outcome.error?.code == .invalidated)
    }

    @Test(
        "the retried task resumed before it was registered: a thousand quick retries all find their request",
        .timeLimit(.minutes(1)))
    func registered() async throws {
        let server = try ScriptedServer(["/f": [.status(503, body: "x")]])
        manager.retrier = CountingRetrier(limit: 9)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    let request = manager.request(server.url("/f")).validate()
                    #expect(await request.outcome.error?.httpStatus == 503)
                    #expect(request.retryCount == 9)
                }
            }
        }
        #expect(server.requests().count == 1000)
    }

    @Test("the delegate released during the retry delay: the handlers run, and run at once", .timeLimit(.minutes(1)))
    func releasedInDelay() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let retrier = CountingRetrier(limit: 9, delay: 3_600_000)
        let codes = Notes<TransferError.Code?>()
        weak var released: SessionDelegate?
        do {
            let manager = try SessionManager(configuration: .test())
            released = manager.delegate
            manager.retrier = retrier
            manager.request(server.url("/f")).validate().response { codes.add($0.error?.code) }
            try await eventually(that: "it waits") { retrier.asked.withLock { !$0.isEmpty } }
        }
        try await eventually(that: "its handler ran") { codes.all == [.cancelled] }
        try await eventually(that: "nothing keeps the delegate") { released == nil }
    }

    @Test("resume data set after the handlers had run: they are there when the first handler runs")
    func resumeDataInTime() async throws {
        let resource = Resource(size: 500_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 200_000)]])
        let seen = Notes<Bool>()
        for number in 0..<10 {
            let request = manager.download(
                server.url("/f"), to: place.target("\(number)", part: ".\(number).part"))
            request.response(queue: .inline) { [weak request] response in
                seen.add(response.resumeData != nil && request?.resumeData == response.resumeData)
            }
            _ = await request.outcome
        }
        #expect(seen.all == Array(repeating: true, count: 10))
    }

    @Test("K15: resume data outlive an attempt that never began")
    func resumeDataKept() async throws {
        let resource = Resource(size: 500_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 200_000)]])
        let resumeData = try #require(
            await manager.download(server.url("/f"), to: place.target()).outcome.resumeData)
        func again() -> DownloadRequest {
            manager.download(server.url("/f"), to: place.target(), resumingWith: resumeData)
        }
        #expect(await again().cancel().outcome.resumeData == resumeData)
        // Suspended before its loop received it.
        let still = again().adapt(
            with: ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
                try? await Task.sleep(for: .milliseconds(20))
            })
        still.resume().suspend()
        try await eventually(that: "it has its task") { still.task != nil }
        #expect(await still.cancel().outcome.resumeData == resumeData)
        manager.session.finishTasksAndInvalidate()
        let outcome = await again().outcome
        #expect(outcome.error?.code == .invalidated && outcome.resumeData == resumeData)
    }

    @Test("K14: cancelled between two attempts with nothing to be kept, a download leaves nothing")
    func nothingKept() async throws {
        let resource = Resource(size: 500_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 200_000)]])
        let retrier = CountingRetrier(limit: 9, delay: 3_600_000)
        manager.retrier = retrier
        let request = manager.download(server.url("/f"), to: place.target()).resume()
        try await eventually(that: "it waits") { retrier.asked.withLock { !$0.isEmpty } }
        request.cancel(keepingBytes: false)
        let outcome = await request.outcome
        #expect(outcome.error?.code == .cancelled && outcome.resumeData == nil)
        #expect(place.names.isEmpty)
    }

    @Test("one queue a request: a thousand requests share a few threads")
    func threads() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let retrier = CountingRetrier(limit: 1, delay: 3_600_000)
        manager.retrier = retrier
        let before = try threadCount()
        let requests = (0..<1000).map { _ in
            manager.request(server.url("/f")).validate().response { _ in }.response(queue: .shared) { _ in }
        }
        try await eventually(that: "all wait") { retrier.asked.withLock { $0.count == 1000 } }
        let during = try threadCount()
        // The server of this test has a thread for each connection; libcurl keeps no more connections than it needs.
        #expect(during - before < 1000 + 64)
        for request in requests { request.cancel() }
        for request in requests { _ = await request.outcome }
        #expect(manager.delegate.requestCount == 0)
    }

    private func threadCount() throws -> Int {
        let status = String(decoding: try bytes(ofFileAt: "/proc/self/status"), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("Threads:") } ?? ""
        return Int(line.drop { !$0.isNumber }) ?? 0
    }
}
