import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// One test for each statement about the system that the engine follows.
@Suite("SessionDelegate as described: the receiver of all callbacks of a session")
struct SessionDelegateSystemTests {
    private let manager: SessionManager
    private let place: TemporaryDirectory

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try TemporaryDirectory()
    }

    private var delegate: SessionDelegate { manager.delegate }

    @Test("each callback has a closure, and setting it replaces the default")
    func closureReplacesDefault() async throws {
        let server = try ScriptedServer(["/a": [.redirect("/b")], "/b": [.status(200, body: "b")]])
        #expect(try await manager.request(server.url("/a")).string == "b")
        delegate.taskWillPerformHTTPRedirection = { _, _, _ in nil }
        #expect(await manager.request(server.url("/a")).outcome.head?.status == 302)
        delegate.taskWillPerformHTTPRedirection = nil
        #expect(try await manager.request(server.url("/a")).string == "b")
    }

    @Test("a callback that need not be handled calls its closure and nothing else")
    func observingClosure() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let seen = Notes<Int>()
        delegate.taskDidFinishCollectingMetrics = { _, metrics in seen.add(metrics.exchanges.count) }
        #expect(try await manager.request(server.url("/a")).string == "a")
        #expect(seen.all == [1])
    }

    @Test("the retrier is kept by the delegate, and the manager passes it on")
    func retrierOfDelegate() {
        let retrier = CountingRetrier(limit: 1)
        manager.retrier = retrier
        #expect(delegate.retrier as? CountingRetrier === retrier)
        delegate.retrier = nil
        #expect(manager.retrier == nil)
    }

    @Test("the delegate does not keep its manager alive")
    func noCycle() throws {
        var manager: SessionManager? = try SessionManager(configuration: .test())
        weak let released = manager
        let delegate = try #require(manager?.delegate)
        manager = nil
        #expect(released == nil && delegate.requestCount == 0)
    }

    @Test("requests are found by their tasks, from any thread")
    func requestsByTask() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        let requests = (0..<8).map { _ in manager.request(server.url("/a")).resume() }
        for request in requests {
            let task = try #require(request.task)
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<4 { group.addTask { self.delegate[task] === request } }
                for await isFound in group { #expect(isFound) }
            }
        }
        #expect(delegate.requestCount == 8)
        for request in requests { request.cancel() }
        for request in requests { _ = await request.outcome }
        #expect(delegate.requestCount == 0)
    }

    @Test("responds(to:) says whether a callback has a closure")
    func respondsTo() {
        #expect(!delegate.responds(to: .dataTaskDidReceiveResponse))
        delegate.dataTaskDidReceiveResponse = { _, _ in .allow }
        #expect(delegate.responds(to: .dataTaskDidReceiveResponse))
        #expect(!delegate.responds(to: .taskDidComplete))
    }

    // MARK: Challenges

    private func challenging() throws -> ScriptedServer {
        try ScriptedServer([
            "/a": [
                .status(401, headers: ["WWW-Authenticate: Basic realm=\"r\""]), .status(200, body: "in"),
            ]
        ])
    }

    @Test("a task's challenge goes to the closure with a completion first, then to the plain one")
    func challengePrecedence() async throws {
        let order = Notes<String>()
        delegate.taskDidReceiveChallenge = { _, _ in
            order.add("plain")
            return (.useCredential, Credential(user: "u", password: "p"))
        }
        let (first, second) = (try challenging(), try challenging())
        #expect(try await manager.request(first.url("/a")).string == "in")
        delegate.taskDidReceiveChallengeWithCompletion = { _, _, completion in
            order.add("completion")
            completion(.useCredential, Credential(user: "u", password: "p"))
        }
        #expect(try await manager.request(second.url("/a")).string == "in")
        #expect(order.all == ["plain", "completion"])
    }

    @Test("without a closure the task's own delegate decides")
    func challengeOfTask() async throws {
        let server = try challenging()
        let request = manager.request(server.url("/a")).authenticate(user: "u", password: "p")
        #expect(try await request.string == "in")
    }

    @Test("without a request the session's challenge decides, its completion first")
    func challengeOfSession() async throws {
        let order = Notes<String>()
        delegate.sessionDidReceiveChallenge = { _, _ in
            order.add("plain")
            return (.useCredential, Credential(user: "u", password: "p"))
        }
        for closure in ["plain", "completion"] {
            if closure == "completion" {
                delegate.sessionDidReceiveChallengeWithCompletion = { _, _, completion in
                    order.add("completion")
                    completion(.useCredential, Credential(user: "u", password: "p"))
                }
            }
            let server = try challenging()
            let task = manager.session.dataTask(with: TransferRequest(url: server.url("/a")))
            task.resume()
            try await eventually(that: "the task is complete") { task.state == .completed }
            #expect(task.response?.status == 200)
        }
        #expect(order.all == ["plain", "completion"])
    }

    @Test("server trust: the host's policy is evaluated, and decides between use and cancellation")
    func serverTrust() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server))
        for isTrusted in [true, false] {
            let policies = ServerTrustPolicyManager(policies: ["localhost": .customEvaluation { _, _ in isTrusted }])
            let manager = try SessionManager(configuration: .test(), serverTrustPolicyManager: policies)
            var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
            request.caCertificates = certificates.authority.text
            #expect((await manager.request(request).outcome.error == nil) == isTrusted)
        }
    }

    @Test("server trust: a closure of the session decides before the policy")
    func serverTrustClosure() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server))
        let policies = ServerTrustPolicyManager(policies: ["localhost": .customEvaluation { _, _ in false }])
        let manager = try SessionManager(configuration: .test(), serverTrustPolicyManager: policies)
        manager.delegate.sessionDidReceiveChallenge = { _, challenge in
            (challenge.serverTrust == nil ? .performDefaultHandling : .useCredential, nil)
        }
        #expect(try await manager.request(nginx.url("/ok", host: "localhost")).string == "fine")
    }

    // MARK: Completion

    @Test("the metrics are passed on to the task's delegate")
    func metrics() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let request = manager.request(server.url("/a"))
        _ = try await request.value
        #expect(request.delegate.metrics.exchanges.count == 1)
    }

    @Test("all validators run before the error is looked at, and theirs counts as the request's")
    func validators() async throws {
        let server = try ScriptedServer(["/a": [.status(500)]])
        let request = manager.request(server.url("/a")).validate()
        #expect(await request.outcome.error?.httpStatus == 500)
        #expect(request.delegate.error?.httpStatus == 500)
    }

    @Test("the retrier is asked only for an error, and its delay is kept")
    func retrierWithDelay() async throws {
        let server = try ScriptedServer(["/a": [.status(500), .status(200, body: "a")]])
        let retrier = CountingRetrier(limit: 1, delay: 150)
        manager.retrier = retrier
        let begun = ContinuousClock.now
        #expect(try await manager.request(server.url("/a")).validate().string == "a")
        #expect(ContinuousClock.now - begun >= .milliseconds(150))
        #expect(try await manager.request(server.url("/a")).validate().string == "a")
        #expect(retrier.asked.withLock { $0.count } == 1)
    }

    @Test("the retried task is registered for its request")
    func retriedTask() async throws {
        let server = try ScriptedServer(["/a": [.status(500), .hang]])
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.request(server.url("/a")).validate().resume()
        let first = request.task?.identifier
        try await eventually(that: "the second attempt runs") { server.requests().count == 2 }
        let task = try #require(request.task)
        #expect(task.identifier != first && delegate[task] === request)
        request.cancel()
        _ = await request.outcome
    }

    @Test("after validation and retries taskDidComplete runs, then the task's delegate, then the event, then handlers")
    func orderOfCompletion() async throws {
        let server = try ScriptedServer(["/a": [.status(500)]])
        manager.retrier = CountingRetrier(limit: 2)
        let order = Notes<String>()
        delegate.taskDidComplete = { task, error in
            order.add("session \(error?.httpStatus ?? 0) \(task.response?.status ?? 0)")
        }
        let request = manager.request(server.url("/a")).validate()
        request.delegate.taskDidCompleteWithError = { [weak request] _, error in
            order.add("task \(error?.httpStatus ?? 0)")
            request?.delegate.error = error
        }
        let stream = manager.session.events.stream()
        request.response(queue: .inline) { order.add("handler \($0.error?.httpStatus ?? 0)") }
        await request.completion()
        #expect(order.all == ["session 500 500", "task 500", "handler 500"])
        #expect(server.requests().count == 3)
        for await event in stream {
            if case .didComplete(let completed, _) = event, completed === request { break }
        }
        #expect(delegate.requestCount == 0)
    }

    @Test("the request is found by its task until the callbacks for its end have returned")
    func requestInCallbacks() async throws {
        let server = try ScriptedServer(["/a": [.status(503), .status(200, body: "a")]])
        manager.retrier = CountingRetrier(limit: 1)
        let found = Notes<Bool>()
        delegate.taskDidFinishCollectingMetrics = { [delegate] task, _ in found.add(delegate[task] != nil) }
        delegate.taskDidComplete = { [delegate] task, _ in found.add(delegate[task: task] != nil) }
        #expect(try await manager.request(server.url("/a")).validate().string == "a")
        #expect(found.all == [true, true, true] && delegate.requestCount == 0)
    }

    @Test("taskDidComplete switches neither validation nor retry off")
    func completionInAddition() async throws {
        let server = try ScriptedServer(["/a": [.status(503), .status(200, body: "a")]])
        manager.retrier = CountingRetrier(limit: 1)
        delegate.taskDidComplete = { _, _ in }
        #expect(try await manager.request(server.url("/a")).validate().string == "a")
    }

    // MARK: Data, download and stream tasks

    @Test("a data task's callbacks: response, data, caching")
    func dataCallbacks() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "abc")]])
        let seen = Notes<String>()
        delegate.dataTaskDidReceiveResponse = { _, head in
            seen.add("response \(head.status)")
            return .allow
        }
        delegate.dataTaskDidReceiveData = { _, bytes in seen.add("data \(bytes.count)") }
        _ = await manager.request(server.url("/a")).outcome
        #expect(seen.all == ["response 200", "data 3"])
    }

    @Test("a download task's callbacks: written bytes, resumption, end")
    func downloadCallbacks() async throws {
        let resource = Resource(size: 2 << 20)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 1 << 20), .serve(resource)]])
        let seen = Notes<String>()
        delegate.downloadTaskDidWriteData = { _, _, _, _ in seen.add("wrote") }
        delegate.downloadTaskDidResumeAtOffset = { _, offset, _ in seen.add("resumed \(offset > 0)") }
        delegate.downloadTaskDidFinishDownloading = { _, file in seen.add("finished \(file.size)") }
        manager.retrier = CountingRetrier(limit: 1)
        _ = try await manager.download(server.url("/f"), to: place.file("f")).value
        #expect(seen.all.contains("wrote") && seen.all.contains("resumed true"))
        #expect(seen.all.last == "finished \(resource.size)")
    }

    // MARK: Subclasses

    private final class Recorder: SessionDelegate, @unchecked Sendable {
        let seen = Notes<String>()

        override func task(
            _ task: any SessionTask, willPerformHTTPRedirection response: ResponseHead, newRequest: TransferRequest,
            completion: @escaping @Sendable (TransferRequest?) -> Void
        ) {
            seen.add("redirect")
            super.task(task, willPerformHTTPRedirection: response, newRequest: newRequest, completion: completion)
        }

        override func dataTask(
            _ task: DataTask, didReceive response: ResponseHead,
            completion: @escaping @Sendable (ResponseDisposition) -> Void
        ) {
            seen.add("response")
            super.dataTask(task, didReceive: response, completion: completion)
        }

        override func dataTask(_ task: DataTask, didReceive bytes: [UInt8]) {
            seen.add("data \(bytes.count)")
            super.dataTask(task, didReceive: bytes)
        }

        override func task(_ task: any SessionTask, didCompleteWithError error: TransferError?) {
            seen.add("complete")
            super.task(task, didCompleteWithError: error)
        }

        override func session(
            _ session: Session, didReceive challenge: AuthenticationChallenge,
            completion: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
        ) {
            seen.add("trust \(challenge.serverTrust != nil)")
            super.session(session, didReceive: challenge, completion: completion)
        }
    }

    @Test("a subclass sees every callback, and super does what is done without it")
    func subclass() async throws {
        let server = try ScriptedServer(["/a": [.redirect("/b")], "/b": [.status(200, body: "abc")]])
        let recorder = Recorder()
        let manager = try SessionManager(configuration: .test(), delegate: recorder)
        #expect(try await manager.request(server.url("/a")).string == "abc")
        #expect(recorder.seen.all == ["redirect", "response", "data 3", "complete"])
    }

    @Test("a subclass sees a body that is read as a sequence, each piece once")
    func subclassAndSequence() async throws {
        let resource = Resource(size: 4 << 20)
        let server = try ScriptedServer(["/a": [.serve(resource)]])
        let recorder = Recorder()
        let manager = try SessionManager(configuration: .test(), delegate: recorder)
        var count = 0
        for try await bytes in manager.request(server.url("/a")).body {
            count += bytes.count
            try await Task.sleep(for: .milliseconds(1))
        }
        let shown = recorder.seen.all.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
        #expect(count == 4 << 20 && shown.reduce(0, +) == 4 << 20)
    }

    @Test("a subclass decides on the trust of servers")
    func subclassAndTrust() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server))
        let recorder = Recorder()
        let manager = try SessionManager(configuration: .test(), delegate: recorder)
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.caCertificates = certificates.authority.text
        #expect(try await manager.request(request).string == "fine")
        #expect(recorder.seen.all.first == "trust true")
    }
}
