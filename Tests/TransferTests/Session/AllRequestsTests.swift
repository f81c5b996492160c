import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("All requests of a manager, and the release of the manager")
struct AllRequestsTests {
    @Test("the requests and tasks that run are listed in the order of their creation")
    func lists() async throws {
        let server = try ScriptedServer(["/hang": [.hang, .hang, .hang], "/f": [.status(200)]])
        let manager = try SessionManager(configuration: .test())
        _ = await manager.request(server.url("/f")).outcome
        let unstarted = manager.request(server.url("/hang"))
        let requests = (0..<3).map { _ in manager.request(server.url("/hang")).resume() }
        #expect(manager.allRequests.map(\.id) == requests.map(\.id))
        #expect(manager.allTasks.map(\.identifier) == requests.map { $0.task?.identifier })
        let passed = Notes<[Int]>()
        manager.withAllRequests { passed.add($0.map(\.id)) }
        try await eventually(that: "the requests are passed on") { passed.all == [requests.map(\.id)] }
        await manager.cancelAllRequests()
        #expect(manager.allRequests.isEmpty && manager.allTasks.isEmpty)
        #expect(!unstarted.isCancelled)
    }

    @Test("all requests are cancelled, then the completion runs after their handlers, and the manager goes on")
    func cancellation() async throws {
        let server = try ScriptedServer(["/hang": [.hang, .hang, .hang, .hang], "/f": [.status(200, body: "abc")]])
        let manager = try SessionManager(configuration: .test())
        let notes = Notes<String>()
        for _ in 0..<3 {
            manager.request(server.url("/hang")).response { notes.add($0.result.error?.code.rawValue ?? "") }
        }
        manager.cancelAllRequests { notes.add("done") }
        try await eventually(that: "the completion has run") { notes.all.last == "done" }
        #expect(notes.all == ["cancelled", "cancelled", "cancelled", "done"])

        let request = manager.request(server.url("/hang")).resume()
        await manager.cancelAllRequests()
        #expect(request.delegate.isComplete)
        manager.cancelAllRequests { notes.add("nothing to cancel") }
        try await eventually(that: "the completion has run") { notes.all.last == "nothing to cancel" }
        #expect(try await manager.request(server.url("/f")).string == "abc")
    }

    // MARK: Release

    private static let advice = "the session was released: keep a reference to its manager while its requests run"

    @Test("a request whose manager was released before it started says so")
    func releasedBeforeStart() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        let request = try SessionManager(configuration: .test()).request(server.url("/f"))
        let error = await request.outcome.result.error
        #expect(error?.code == .invalidated && error?.message == Self.advice)
        #expect(server.requests().isEmpty)
    }

    @Test("a running request whose manager is released is cancelled, and says why")
    func releasedWhileRunning() async throws {
        let server = try ScriptedServer(["/hang": [.hang, .hang]])
        var manager: SessionManager? = try SessionManager(configuration: .test())
        let request = try #require(manager).request(server.url("/hang")).resume()
        let cancelled = try #require(manager).request(server.url("/hang")).resume()
        try await eventually(that: "the server has the requests") { server.requests().count == 2 }
        cancelled.cancel()
        manager = nil
        let error = await request.outcome.result.error
        #expect(error?.code == .cancelled && error?.message == Self.advice)
        #expect(await cancelled.outcome.result.error == .cancelled)
    }

    @Test("a session that is invalidated by its owner does not give that advice")
    func invalidated() async throws {
        let manager = try SessionManager(configuration: .test())
        manager.session.invalidateAndCancel()
        let error = await manager.request("http://127.0.0.1:1/").outcome.result.error
        #expect(error?.code == .invalidated && error?.message != Self.advice)
    }
}
