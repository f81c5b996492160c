import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// The way of a request through the systems, as the description of the flow states it.
@Suite("The flow of a request as described")
struct RequestFlowSystemTests {
    private let manager: SessionManager

    init() throws { manager = try SessionManager(configuration: .test()) }

    @Test("the manager makes the request, adapts it, makes its task, registers it, and starts it")
    func making() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        manager.adapter = ClosureAdapter { $0.headerFields[.authorization] = "Bearer t" }
        let request = manager.request(server.url("/a"))
        #expect(request.task == nil && manager.delegate.requestCount == 0)
        #expect(try await request.string == "a")
        #expect(server.requests().first?.header("authorization") == "Bearer t")
        #expect(request.original?.headerFields[.authorization] == nil)
        #expect(request.request?.headerFields[.authorization] == "Bearer t")
    }

    @Test("the session's delegate holds the request until its task is complete, then releases it")
    func release() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        weak var released: Request?
        do {
            let request = manager.request(server.url("/a"))
            released = request
            _ = try await request.value
        }
        try await eventually(that: "the request was released") { released == nil }
    }

    @Test("a response handler is added to the suspended queue, which runs when the task is complete")
    func handlers() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        manager.startRequestsImmediately = false
        let order = Notes<String>()
        let request = manager.request(server.url("/a"))
            .responseString(queue: .inline) { order.add($0.value ?? "") }
            .response(queue: .inline) { _ in order.add("second") }
        #expect(request.delegate.queue.isSuspended && order.all.isEmpty)
        request.resume()
        await request.completion()
        #expect(order.all == ["a", "second"])
    }

    @Test("a configuration is read once, when its session is made")
    func configuration() throws {
        var configuration = SessionConfiguration.test()
        configuration.maximumRedirects = 3
        let session = try Session(configuration: configuration)
        configuration.maximumRedirects = 9
        #expect(session.configuration.maximumRedirects == 3)
        session.invalidateAndCancel()
    }
}
