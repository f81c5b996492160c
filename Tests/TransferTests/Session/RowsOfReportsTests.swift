import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Rows of the engine: what is told of requests")
struct RowsOfReportsTests {
    private let manager: SessionManager
    private let place: Place

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try Place()
    }

    @Test("K26: every answer comes with what its attempts took, redirects and retries included")
    func metrics() async throws {
        let server = try ScriptedServer([
            "/f": [.redirect("/g")], "/g": [.status(503), .status(200, body: "abc")],
        ])
        manager.retrier = CountingRetrier(limit: 3)
        let good = await manager.request(server.url("/f")).validate().outcome
        #expect(good.metrics.exchanges.map(\.status) == [302, 503, 302, 200])
        #expect(good.metrics.redirectCount == 2)
        let timeline = try #require(good.timeline)
        let first = try #require(timeline.firstByte)
        let began = try #require(timeline.requestBegan)
        #expect(began <= first && first <= timeline.ended)
        let last = try #require(good.metrics.last)
        #expect(last.protocolName == "http/1.1" && last.remoteAddress == "127.0.0.1" && last.remotePort == server.port)
        let download = await manager.download(server.url("/g"), to: place.target()).outcome
        #expect(download.timeline != nil)
    }

    @Test("M27: one typed stream tells what becomes of requests, each thing once")
    func events() async throws {
        let server = try ScriptedServer(["/f": [.status(503), .status(200)], "/hang": [.hang]])
        manager.retrier = CountingRetrier(limit: 1)
        let told = Notes<String>()
        let stream = manager.session.events.stream()
        let listening = Task {
            for await event in stream {
                switch event {
                case .didResume: told.add("resume")
                case .didSuspend: told.add("suspend")
                case .didCancel: told.add("cancel")
                case .willRetry(_, let error): told.add("retry \(error.httpStatus ?? 0)")
                case .didComplete(_, let error): told.add("complete \(error?.code.rawValue ?? "")")
                }
            }
        }
        let request = manager.request(server.url("/f")).validate()
        _ = await request.outcome
        request.cancel().resume().suspend()
        let hanging = manager.request(server.url("/hang")).resume()
        hanging.suspend().suspend().resume().resume().cancel().cancel()
        _ = await hanging.outcome
        let unstarted = manager.request(server.url("/f"))
        unstarted.cancel().cancel()
        manager.session.finishTasksAndInvalidate()
        await listening.value
        #expect(
            told.all == [
                "resume", "retry 503", "complete ", "resume", "suspend", "resume", "cancel", "complete cancelled",
                "cancel", "complete cancelled",
            ])
    }

    @Test("M28: neither the description nor the curl command shows what proves who asks")
    func redaction() {
        var request = TransferRequest(
            url: "https://me:pass@example.org/path?key=hidden1&page#hidden2", method: .put,
            credential: Credential(user: "me", password: "hidden3"))
        request.headerFields[.authorization] = "Bearer hidden4"
        request.headerFields[.cookie] = "session=hidden5"
        request.proxy = "http://u:hidden6@proxy:3128"
        for name in [
            "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "X-Amz-Security-Token", "X-CSRF-Token",
            "X-Client-Secret", "X-Password", "X-Amz-Signature",
        ] {
            if let name = HTTPField.Name(name) { request.headerFields[name] = "hidden7" }
        }
        request.headerFields[.accept] = "it's"
        let made = manager.request(request)
        for text in [made.description, made.debugDescription] {
            #expect(!text.contains("hidden") && !text.contains("pass@") && !text.contains("me:"))
        }
        #expect(made.description == "PUT https://example.org/path?key=…&page")
        #expect(made.debugDescription.contains("--request 'PUT'"))
        #expect(made.debugDescription.contains("'Accept: it'\\''s'"))
        #expect(made.debugDescription.contains("'Cookie: …'"))
        #expect(made.debugDescription.contains("'Authorization: …'"))
    }

    @Test("K30: closures that override take the place of the defaults, those with a completion before the plain ones")
    func overrides() async throws {
        let server = try ScriptedServer([
            "/f": [.redirect("/g"), .redirect("/g")], "/g": [.status(404)], "/h": [.status(200, body: "here")],
        ])
        let retrier = CountingRetrier(limit: 3)
        manager.retrier = retrier
        #expect(!manager.delegate.responds(to: .taskWillPerformHTTPRedirection))
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _ in nil }
        #expect(manager.delegate.responds(to: .taskWillPerformHTTPRedirection))
        #expect(await manager.request(server.url("/f")).outcome.head?.status == 302)
        manager.delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, next, completion in
            var next = next
            next.url = server.url("/h")
            completion(next)
        }
        #expect(try await manager.request(server.url("/f")).string == "here")
        let completed = Notes<Int?>()
        manager.delegate.taskDidComplete = { task, _ in completed.add(task.response?.status) }
        // The closure is called in addition to validation and retry.
        let request = manager.request(server.url("/g")).validate()
        #expect(await request.outcome.error?.httpStatus == 404)
        #expect(completed.all == [404] && retrier.asked.withLock { $0.count } == 4)
        manager.delegate.taskDidComplete = nil
        #expect(await manager.request(server.url("/g")).validate().outcome.error?.httpStatus == 404)
    }

    @Test(
        "K30: a request whose completion is overridden ends its progress and its events as any other",
        .timeLimit(.minutes(1)))
    func overriddenCompletion() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        manager.delegate.taskDidComplete = { _, _ in }
        let stream = manager.session.events.stream()
        let request = manager.request(server.url("/f")).resume()
        for await _ in request.progress {}
        for await event in stream { if case .didComplete = event { break } }
        #expect(request.delegate.isComplete)
    }

    @Test("a retry by hand is refused where there is nothing to repeat, and ends the wait for the next attempt")
    func retryByHand() async throws {
        let server = try ScriptedServer(["/f": [.status(503), .status(200)]])
        let broken = manager.request("http://[")
        struct Nothing: RequestConvertible {
            func asRequest() throws(TransferError) -> TransferRequest { throw TransferError(.invalidRequest, "no") }
        }
        let none = manager.request(Nothing())
        #expect(!manager.retry(none) && !manager.retry(broken))
        let retrier = CountingRetrier(limit: 1, delay: 3_600_000)
        manager.retrier = retrier
        let request = manager.request(server.url("/f")).validate().resume()
        try await eventually(that: "it waits, and goes on when told") { manager.retry(request) }
        #expect(await request.outcome.head?.status == 200)
    }

    @Test(
        "M28: secrets are hidden in whatever libcurl may take for a URL, and in a request that is printed",
        arguments: [
            "http://u:sesame@h/", "http:/u:sesame@h/", "http:///u:sesame@h/", "HTTP://u:sesame@h?a=sesame#sesame",
            "u:sesame@h/?to=http://x&token=sesame", "//u:sesame@h/",
        ])
    func secretsInURLs(url: String) {
        let request = TransferRequest(
            url: url, headerFields: [.authorization: "Bearer sesame"], credential: .bearer("sesame"))
        for text in [URLRedaction.redact(url), "\(request)", String(reflecting: request), "\([request])"] {
            #expect(!text.contains("sesame") && text.contains("h"), "\(text)")
        }
    }

    @Test(
        "what names no secret is shown as it is",
        arguments: ["http://h/p", "h:80/p", "/p", "127.0.0.1:3128", "http://[::1]:80/p", "tcp://h:1", ""])
    func plainURLs(url: String) { #expect(URLRedaction.redact(url) == url) }
}
