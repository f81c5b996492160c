import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Event monitors of a session")
struct EventMonitorTests {
    /// A monitor that notes the names of events.
    private struct Recorder: EventMonitor {
        let notes = Notes<String>()

        func requestDidCreate(_ request: Request) { notes.add("created") }
        func requestDidResume(_ request: Request) { notes.add("resumed") }
        func requestDidSuspend(_ request: Request) { notes.add("suspended") }
        func requestDidCancel(_ request: Request) { notes.add("cancelled") }

        func request(_ request: Request, didCompleteWith error: TransferError?) {
            notes.add("complete \(error?.code.rawValue ?? "well")")
        }

        func request<Value: Sendable>(_ request: DataRequest, didSerialize response: DataResponse<Value>) {
            notes.add("serialized \(Value.self)")
        }

        func request(_ request: Request, didAdapt original: TransferRequest, to adapted: TransferRequest) {
            notes.add("adapted \(original.headerFields[.cookie] ?? "-") \(adapted.headerFields[.cookie] ?? "-")")
        }

        func request(_ request: Request, didFailToAdapt original: TransferRequest, with error: TransferError) {
            notes.add("not adapted \(error.code.rawValue)")
        }

        func request(_ request: Request, didCreate task: any SessionTask) { notes.add("task") }
        func request(_ request: Request, didReceive head: ResponseHead) { notes.add("received \(head.status)") }

        func request(_ request: Request, didValidate head: ResponseHead, with error: TransferError?) {
            notes.add("validated \(head.status) \(error?.code.rawValue ?? "well")")
        }

        func request(_ request: Request, didCollect metrics: TransferMetrics) {
            notes.add("metrics \(metrics.exchanges.count)")
        }

        func request(_ request: Request, didComplete task: any SessionTask, with error: TransferError?) {
            notes.add("task complete \(error?.code.rawValue ?? "well")")
        }

        func request(_ request: Request, attemptDidEndWith error: TransferError?) {
            notes.add("attempt \(error?.code.rawValue ?? "well")")
        }

        func request(_ request: Request, willRetryAfter error: TransferError) {
            notes.add("retry \(request.retryCount)")
        }
    }

    @Test("a request's events arrive at every monitor, in their order")
    func order() async throws {
        let server = try ScriptedServer([
            "/old": [.redirect("/f"), .redirect("/f")], "/f": [.status(503), .status(200, body: "abc")],
        ])
        let recorders = [Recorder(), Recorder()]
        let manager = try SessionManager(configuration: .test(), eventMonitors: recorders)
        manager.adapter = ClosureAdapter { $0.headerFields[.cookie] = "a=1" }
        manager.retrier = CountingRetrier(limit: 1)
        let text = try await manager.request(server.url("/old")).validate().string
        #expect(text == "abc")
        let attempt = ["adapted - a=1", "task", "received 302"]
        let expected =
            ["created", "resumed"] + attempt
            + ["received 503", "metrics 2", "task complete well", "validated 503 http", "attempt http", "retry 1"]
            + attempt
            + ["received 200", "metrics 2", "task complete well", "validated 200 well", "attempt well"]
            + ["complete well", "serialized String"]
        for recorder in recorders {
            try await eventually(that: "all events have arrived") { recorder.notes.all.count >= expected.count }
            #expect(recorder.notes.all == expected)
        }
    }

    @Test("a suspended and cancelled request, one whose adapter fails, and one that cannot be made")
    func endings() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        let recorder = Recorder()
        let manager = try SessionManager(configuration: .test(), eventMonitors: [recorder])
        let request = manager.request(server.url("/hang")).resume()
        request.suspend().resume().cancel()
        _ = await request.outcome
        #expect(
            await manager.request(server.url("/hang"))
                .adapt(
                    with: ClosureAdapter { (_) throws(TransferError) in
                        throw TransferError(.authenticationFailed, "no token")
                    }
                ).outcome.result.error?.code == .authenticationFailed)
        let expected = [
            "created", "resumed", "task", "suspended", "resumed", "cancelled", "metrics 0", "task complete cancelled",
            "attempt cancelled", "complete cancelled", "created", "resumed", "not adapted authentication",
            "attempt authentication", "complete authentication",
        ]
        try await eventually(that: "all events have arrived") { recorder.notes.all.count >= expected.count }
        // Whether an exchange began before the cancellation is a matter of time.
        #expect(recorder.notes.all.filter { !$0.hasPrefix("metrics") } == expected.filter { !$0.hasPrefix("metrics") })
    }

    @Test("a monitor that blocks delays neither a transfer nor another monitor")
    func slowMonitor() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let gate = Mutex(())
        let isHeld = Atomic<Bool>(true)
        let recorder = Recorder()
        var slow = ClosureEventMonitor()
        let seen = Notes<String>()
        slow.requestDidCreate = { _ in
            while isHeld.load(ordering: .acquiring) { gate.withLock { _ in } }
        }
        slow.requestDidComplete = { _, error in seen.add(error?.message ?? "done") }
        let manager = try SessionManager(configuration: .test(), eventMonitors: [slow, recorder])
        #expect(try await manager.request(server.url("/f")).string == "abc")
        try await eventually(that: "the other monitor has seen the end") {
            recorder.notes.all.contains("complete well")
        }
        #expect(seen.all.isEmpty)
        isHeld.store(false, ordering: .releasing)
        try await eventually(that: "the slow monitor has seen the end") { seen.all == ["done"] }
    }

    @Test("a log has a line for each event, without secrets and control characters")
    func log() async throws {
        let server = try ScriptedServer(["/f?key=secret1": [.redirect("/g?token=secret3")]])
        let lines = Notes<String>()
        let monitor = LoggingEventMonitor { lines.add($0) }
        let manager = try SessionManager(configuration: .test(), eventMonitors: [monitor])
        var wish = TransferRequest(url: server.url("/f?key=secret1"))
        wish.headerFields[.authorization] = "Bearer secret2"
        let request = manager.request(wish).validate()
        _ = await request.outcome
        try await eventually(that: "the last line is there") { lines.all.last?.contains("failed: http") ?? false }
        let start = "request \(request.id): "
        #expect(lines.all.allSatisfy { $0.hasPrefix(start) })
        #expect(!lines.all.contains { $0.contains("secret") })
        #expect(lines.all.first == start + "created, GET \(server.url("/f?key=…"))")
        #expect(lines.all.contains { $0.hasPrefix(start + "received 302") && $0.contains("/g?token=…") })
        #expect(lines.all.contains { $0.hasPrefix(start + "received 404") })

        let forged = TransferError(.validationFailed, "line\nrequest 1: completed")
        monitor.request(request, didCompleteWith: forged)
        #expect(lines.all.last?.hasPrefix(start + "failed: validation, line request 1: completed") ?? false)
    }

    @Test("the time in the line of the end includes the waits between attempts", .timeLimit(.minutes(1)))
    func elapsed() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let lines = Notes<String>()
        let manager = try SessionManager(
            configuration: .test(), startRequestsImmediately: false,
            eventMonitors: [LoggingEventMonitor { lines.add($0) }])
        manager.retrier = ClosureRetrier { _, _ in .retry(after: 60) }
        let attempts = Notes<Int>()
        manager.adapter = ClosureAdapter { (_) throws(TransferError) in
            attempts.add(1)
            // The second attempt ends without an exchange, as one that a circuit breaker holds.
            if attempts.all.count > 1 { throw TransferError(.invalidated, "no") }
        }
        let request = manager.request(server.url("/f")).validate().resume()
        _ = await request.outcome
        let start = "request \(request.id): failed: invalidated, no after "
        try await eventually(that: "the last line is there") { lines.all.last?.hasPrefix(start) ?? false }
        let time = try #require(lines.all.last?.dropFirst(start.count).split(separator: " ").first.flatMap { Int($0) })
        #expect(time >= 50)
        let unstarted = manager.request(server.url("/f")).cancel()
        _ = await unstarted.outcome
        let end = "request \(unstarted.id): failed: cancelled, "
        try await eventually(that: "the last line is there") { lines.all.last?.hasPrefix(end) ?? false }
        #expect(lines.all.last?.contains(" after ") == false)
    }

    @Test("requests have numbers of their own")
    func numbers() throws {
        let manager = try SessionManager(configuration: .test())
        let ids = (0..<10).map { _ in manager.request("http://127.0.0.1:1/").id }
        #expect(Set(ids).count == 10)
        #expect(ids == ids.sorted())
    }
}
