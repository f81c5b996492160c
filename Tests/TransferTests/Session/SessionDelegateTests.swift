import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Session delegates: every callback, and the closure that overrides it")
struct SessionDelegateTests {
    private let manager: SessionManager
    private let place: Place

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try Place()
    }

    private var delegate: SessionDelegate { manager.delegate }

    @Test("a delegate responds to what it has a closure for, and no longer when that is taken away")
    func responds() {
        #expect(!delegate.responds(to: .taskDidComplete))
        delegate.taskDidComplete = { _, _ in }
        delegate.taskNeedNewBodyStreamWithCompletion = { _, completion in completion(nil) }
        #expect(delegate.responds(to: .taskDidComplete) && delegate.responds(to: .taskNeedNewBodyStream))
        #expect(!delegate.responds(to: .dataTaskDidReceiveData))
        delegate.taskDidComplete = nil
        #expect(!delegate.responds(to: .taskDidComplete))
    }

    // MARK: Redirects

    @Test("K30: a redirect is the completion's to decide, then the closure's, then the task's own, then the engine's")
    func redirectPrecedence() async throws {
        let server = try ScriptedServer([
            "/f": [.redirect("/default")], "/default": [.status(200, body: "default")],
            "/own": [.status(200, body: "own")], "/plain": [.status(200, body: "plain")],
            "/later": [.status(200, body: "later")],
        ])
        func end() async throws -> String {
            let request = manager.request(server.url("/f"))
            request.delegate.taskWillPerformHTTPRedirection = { _, response, request in
                #expect(response.status == 302)
                return TransferRequest(url: request.url.replacing("/default", with: "/own"))
            }
            return try await request.string
        }
        #expect(try await manager.request(server.url("/f")).string == "default")
        #expect(try await end() == "own")
        delegate.taskWillPerformHTTPRedirection = { _, _, _ in TransferRequest(url: server.url("/plain")) }
        #expect(try await end() == "plain")
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, completion in
            Task.detached { completion(TransferRequest(url: server.url("/later"))) }
        }
        #expect(try await end() == "later")
    }

    @Test("K24: a redirect that is stopped, at once or later, is itself the answer", arguments: [false, true])
    func stoppedRedirect(later: Bool) async throws {
        let server = try ScriptedServer(["/f": [.status(302, headers: ["Location: /g"], body: "moved")]])
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, _, _, completion in
            if later { Task.detached { completion(nil) } } else { completion(nil) }
        }
        let outcome = await manager.request(server.url("/f")).outcome
        #expect(outcome.head?.status == 302 && outcome.data.map { Array($0) } == Array("moved".utf8))
        #expect(server.requests(for: "/g").isEmpty)
    }

    // MARK: Bodies

    @Test(
        "K30: a stream for a body that is sent again comes from the completion, the closure, the task's own, or itself")
    func newBodyStream() async throws {
        @Sendable func stream(_ byte: UInt8) -> BodyStream {
            BodyStream(length: 3) {
                AsyncStream<[UInt8]> { continuation in
                    continuation.yield([byte, byte, byte])
                    continuation.finish()
                }
            }
        }
        func sent(own: Bool) async throws -> UInt8? {
            let server = try ScriptedServer([
                "/in": [.status(307, headers: ["Location: /there"])], "/there": [.status(201)],
            ])
            let request = manager.upload(
                .stream(stream(1)), with: TransferRequest(url: server.url("/in"), method: .put))
            if own { request.delegate.taskNeedNewBodyStream = { _ in stream(2) } }
            #expect(await request.outcome.head?.status == 201)
            #expect(server.requests(for: "/in").first?.body == [1, 1, 1])
            return server.requests(for: "/there").first?.body.first
        }
        #expect(try await sent(own: false) == 1)
        #expect(try await sent(own: true) == 2)
        delegate.taskNeedNewBodyStream = { _ in stream(3) }
        #expect(try await sent(own: true) == 3)
        delegate.taskNeedNewBodyStreamWithCompletion = { _, completion in Task.detached { completion(stream(4)) } }
        #expect(try await sent(own: true) == 4)
    }

    @Test("what is sent is told, piece by piece and in all")
    func didSend() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let totals = Notes<Int64>()
        delegate.taskDidSendBodyData = { _, bytes, total, expected in
            #expect(bytes > 0 && expected == 900_000)
            totals.add(total)
        }
        let body = [UInt8](repeating: 1, count: 900_000)
        _ = await manager.upload(.data(body), with: TransferRequest(url: server.url("/in"), method: .put)).outcome
        #expect(totals.all.last == 900_000 && totals.all == totals.all.sorted())
    }

    // MARK: Responses

    @Test("an answer is allowed or ends the task, at once or later", arguments: [false, true])
    func response(later: Bool) async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 100_000))]])
        func outcome(_ disposition: ResponseDisposition) async -> DataResponse<Data?> {
            if later {
                delegate.dataTaskDidReceiveResponseWithCompletion = { _, head, completion in
                    #expect(head.status == 200)
                    Task.detached { completion(disposition) }
                }
            } else {
                delegate.dataTaskDidReceiveResponse = { _, _ in disposition }
            }
            return await manager.request(server.url("/f")).outcome
        }
        #expect(await outcome(.allow).data?.count == 100_000)
        #expect(await outcome(.cancel).error?.code == .cancelled)
        #expect(delegate.requestCount == 0)
    }

    @Test("a data task can become a download in the middle of its answer, at once or later", arguments: [false, true])
    func becomeDownload(later: Bool) async throws {
        let resource = Resource(size: 3_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let target = place.target()
        let became = Notes<(Int, Int)>()
        delegate.dataTaskDidReceiveResponseWithCompletion = { _, _, completion in
            if later {
                Task.detached { completion(.becomeDownload(target)) }
            } else {
                completion(.becomeDownload(target))
            }
        }
        delegate.dataTaskDidBecomeDownloadTask = { became.add(($0.identifier, $1.identifier)) }
        let files = Notes<PublishedFile>()
        delegate.downloadTaskDidFinishDownloading = { _, file in files.add(file) }
        let request = manager.request(server.url("/f"))
        #expect(await request.outcome.error == nil)
        #expect(resource.difference(fromFileAt: try #require(files.all.first).path) == nil)
        #expect(became.all.count == 1 && request.task?.identifier == became.all.first?.1)
        #expect(delegate.requestCount == 0)
        #expect(server.requests().count == 1)
    }

    @Test("a closure takes the pieces in the place of keeping them")
    func didReceiveData() async throws {
        let resource = Resource(size: 200_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let pieces = Notes<[UInt8]>()
        delegate.dataTaskDidReceiveData = { _, bytes in pieces.add(bytes) }
        #expect(await manager.request(server.url("/f")).outcome.data?.isEmpty == true)
        #expect(pieces.all.flatMap(\.self) == resource.bytes)
    }

    // MARK: Downloads

    @Test("a download tells what it wrote, where it went on, and what it finished")
    func downloads() async throws {
        let resource = Resource(size: 1_000_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 600_000), .serve(resource)]])
        let (written, resumed, finished) = (Notes<Int64>(), Notes<Int64>(), Notes<PublishedFile>())
        delegate.downloadTaskDidWriteData = { _, bytes, _, expected in
            #expect(expected == 1_000_000)
            written.add(bytes)
        }
        delegate.downloadTaskDidResumeAtOffset = { _, offset, expected in
            #expect(expected == 1_000_000)
            resumed.add(offset)
        }
        delegate.downloadTaskDidFinishDownloading = { task, file in
            #expect(task.file == file)
            finished.add(file)
        }
        manager.retrier = CountingRetrier(limit: 1)
        let file = try await manager.download(server.url("/f"), to: place.target()).value
        #expect(written.all.reduce(0, +) == 1_000_000)
        #expect(resumed.all == [600_000])
        #expect(finished.all == [file])
    }

    // MARK: Completion

    @Test("metrics are told before the end, and the end after validation and retry")
    func completion() async throws {
        let server = try ScriptedServer(["/f": [.redirect("/g")], "/g": [.status(503)]])
        let heard = Notes<String>()
        delegate.taskDidFinishCollectingMetrics = { _, metrics in
            heard.add("metrics \(metrics.exchanges.map { $0.status ?? 0 }) \(metrics.redirectCount)")
        }
        delegate.taskDidComplete = { _, error in heard.add("complete \(error?.httpStatus ?? 0)") }
        let request = manager.request(server.url("/f")).validate().response(queue: .inline) { _ in heard.add("handler")
        }
        await request.completion()
        #expect(heard.all == ["metrics [302, 503] 1", "complete 503", "handler"])
        #expect(server.requests(for: "/g").count == 1 && delegate.requestCount == 0)
    }

    @Test("a task's own delegate hears the end of the request, after its retries")
    func ownCompletion() async throws {
        let server = try ScriptedServer(["/f": [.status(503), .status(200, body: "abc")]])
        manager.retrier = CountingRetrier(limit: 3)
        let ends = Notes<Int?>()
        let request = manager.request(server.url("/f")).validate()
        request.delegate.taskDidCompleteWithError = { task, _ in ends.add(task?.response?.status) }
        #expect(try await request.string == "abc")
        #expect(ends.all == [200])
        #expect(request.delegate.metrics.exchanges.count == 2 && request.delegate.initialResponseTime != nil)
    }

    // MARK: Events

    @Test("M27: what becomes of a session's requests is one stream of events, each with its request")
    func events() async throws {
        let server = try ScriptedServer(["/f": [.status(503), .status(200, body: "abc")], "/hang": [.hang]])
        manager.retrier = CountingRetrier(limit: 3)
        let events = manager.session.events.stream()
        let request = manager.request(server.url("/f")).validate()
        _ = try await request.string
        let cancelled = manager.request(server.url("/hang")).resume().suspend().cancel()
        await cancelled.completion()
        manager.session.finishTasksAndInvalidate()
        var heard: [String] = []
        for await event in events {
            let name =
                switch event {
                case .didResume: "resume"
                case .didSuspend: "suspend"
                case .didCancel: "cancel"
                case .willRetry(_, let error): "retry \(error.httpStatus ?? 0)"
                case .didComplete(_, let error): "complete \(error?.code.rawValue ?? "")"
                }
            heard.append((event.request === request ? "a " : "b ") + name)
        }
        #expect(
            heard == [
                "a resume", "a retry 503", "a complete ", "b resume", "b suspend", "b cancel", "b complete cancelled",
            ])
    }

    @Test("who listens for events of a session that has ended hears that it has", .timeLimit(.minutes(1)))
    func eventsAfterTheEnd() async {
        manager.session.invalidateAndCancel()
        for await _ in manager.session.events { Issue.record("an event after the end") }
    }

    // MARK: Suspension

    @Test("a task that became a download stands still, goes on and is cancelled as any other", .timeLimit(.minutes(1)))
    func becameDownload() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer(["/f": [.drip(resource, after: 280_000, bytesPerSecond: 1000)]])
        let place = try Place()
        manager.delegate.dataTaskDidReceiveResponse = { _, _ in .becomeDownload(place.target()) }
        let request = manager.request(server.url("/f")).resume()
        try await eventually(that: "bytes come") { request.progress.completedBytes >= 100_000 }
        #expect(request.task?.state == .running)
        request.suspend()
        #expect(request.task?.state == .suspended)
        request.resume()
        request.cancel()
        let error = await request.outcome.error
        #expect(error?.code == .cancelled)
        #expect(error?.resumeData?.ranges.contiguousEnd ?? 0 >= 100_000)
        #expect(server.requests().count == 1 && place.names == [Place.partName])
    }

    @Test("a request that is suspended takes no bytes, and goes on where it stood", .timeLimit(.minutes(1)))
    func suspend() async throws {
        let resource = Resource(size: 4_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        manager.session.downloadLimiter.rate = 400_000
        let download = manager.download(server.url("/f"), to: place.target()).resume()
        try await eventually(that: "bytes come") { download.progress.transferredBytes > 100_000 }
        download.suspend()
        #expect(download.task?.state == .suspended)
        var before: Int64 = -1
        try await eventually(that: "it stands still") {
            defer { before = download.progress.transferredBytes }
            try? await Task.sleep(for: .milliseconds(100))
            return before == download.progress.transferredBytes
        }
        #expect(before < 4_000_000)
        manager.session.downloadLimiter.rate = nil
        download.resume()
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        #expect(server.requests().count == 1)
    }
}
