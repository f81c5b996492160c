import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("M31: all events of a session have been delivered")
struct BackgroundEventsTests {
    private let manager: SessionManager
    private let server: ScriptedServer

    init() throws {
        manager = try SessionManager(configuration: .test())
        server = try ScriptedServer(["/f": [.status(503), .status(200)], "/ok": [.status(200)], "/hang": [.hang]])
    }

    @Test("M31: the handler is called when the last handler of the last request has run, over retries too")
    func lastHandler() async throws {
        let notes = Notes<String>()
        let idle = AsyncStream.makeStream(of: Void.self)
        manager.retrier = CountingRetrier(limit: 1, delay: 20)
        manager.backgroundCompletionHandler = {
            notes.add("idle")
            idle.continuation.finish()
        }
        let queue = HandlerQueue.dispatch(DispatchQueue(label: "test"))
        for path in ["/f", "/ok"] {
            manager.request(server.url(path)).validate()
                .response { _ in notes.add("handler") }.response(queue: .inline) { _ in notes.add("handler") }
                .response(queue: queue) { _ in notes.add("handler") }
        }
        for await _ in idle.stream {}
        #expect(notes.all == Array(repeating: "handler", count: 6) + ["idle"])
    }

    @Test("M31: once for each time that the session goes idle")
    func once() async throws {
        let count = Atomic<Int>(0)
        manager.delegate.sessionDidFinishEvents = { _ in count.wrappingAdd(1, ordering: .relaxed) }
        let requests = (0..<20).map { _ in manager.request(server.url("/hang")).resume() }
        try await eventually(that: "all hang") { server.requests(for: "/hang").count == 20 }
        #expect(count.load(ordering: .relaxed) == 0)
        for request in requests { request.cancel() }
        for request in requests { _ = await request.outcome }
        try await eventually(that: "the session is idle") { count.load(ordering: .relaxed) == 1 }
        _ = await manager.request(server.url("/ok")).outcome
        try await eventually(that: "the session is idle again") { count.load(ordering: .relaxed) == 2 }
    }

    @Test("M31: the delegate's closure suppresses the handler, and one cancelled before its start is no event")
    func suppressed() async throws {
        let notes = Notes<String>()
        manager.backgroundCompletionHandler = { notes.add("handler") }
        #expect(!manager.delegate.responds(to: .sessionDidFinishEvents))
        manager.delegate.sessionDidFinishEvents = { [session = manager.session] in
            notes.add($0 === session ? "closure" : "")
        }
        #expect(manager.delegate.responds(to: .sessionDidFinishEvents))
        _ = await manager.request(server.url("/ok")).cancel().outcome
        #expect(notes.all.isEmpty)
        _ = await manager.request(server.url("/ok")).outcome
        try await eventually(that: "it was told") { !notes.all.isEmpty }
        #expect(notes.all == ["closure"])
    }

    @Test("M31: tasks without a request count, and so does what the end of the session brings", .timeLimit(.minutes(1)))
    func tasks() async throws {
        let idle = AsyncStream.makeStream(of: Void.self)
        let manager = try SessionManager(configuration: .test())
        manager.backgroundCompletionHandler = { idle.continuation.yield() }
        let session = manager.session
        session.dataTask(with: TransferRequest(url: server.url("/ok"))).resume()
        var times = idle.stream.makeAsyncIterator()
        _ = await times.next()
        manager.request(server.url("/hang")).resume()
        try await eventually(that: "it hangs") { server.requests(for: "/hang").count == 1 }
        session.invalidateAndCancel()
        _ = await times.next()
    }
}
