@preconcurrency import Dispatch
import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// One test for each statement about the system that the engine follows.
@Suite("SessionManager as described: the maker of all requests")
struct SessionManagerSystemTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func manager() throws -> SessionManager { try SessionManager(configuration: .test()) }

    // MARK: Properties

    @Test("there is a default manager, and it is the same each time")
    func defaultManager() throws {
        #expect(try SessionManager.default === SessionManager.default)
    }

    @Test("default header fields: codings, languages with falling weight, and a user agent")
    func defaultHeaders() async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let manager = try manager()
        _ = await manager.request(server.url("/a")).outcome
        let request = try #require(server.requests().first)
        #expect(request.header("accept-encoding")?.contains("gzip") == true)
        #expect(request.header("user-agent")?.isEmpty == false)
        #expect(SessionManager.defaultHTTPHeaders.contains { $0.name == .acceptEncoding })
    }

    @Test("forms of up to 10,000,000 bytes are kept in memory")
    func threshold() { #expect(SessionManager.multipartFormDataEncodingMemoryThreshold == 10_000_000) }

    @Test("whether requests start immediately can be set at any time, for the requests made afterwards")
    func startRequestsImmediately() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        #expect(manager.startRequestsImmediately)
        let early = manager.request(server.url("/a"))
        manager.startRequestsImmediately = false
        let ends = Notes<Int>()
        let late = manager.request(server.url("/a")).response(queue: .inline) { _ in ends.add(1) }
        #expect(try await early.string == "a")
        #expect(ends.all.isEmpty && server.requests().count == 1)
        late.resume()
        #expect(try await late.string == "a")
        #expect(ends.all == [1])
    }

    @Test("handlers run on the manager's queue unless they name one")
    func callbackQueue() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let key = DispatchSpecificKey<String>()
        func queue(_ name: String) -> HandlerQueue {
            let queue = DispatchQueue(label: name)
            queue.setSpecific(key: key, value: name)
            return .dispatch(queue)
        }
        manager.callbackQueue = queue("manager")
        let seen = Notes<String>()
        manager.request(server.url("/a"))
            .onProgress { _ in seen.add("progress \(DispatchQueue.getSpecific(key: key) ?? "")") }
            .responseString { _ in seen.add("text \(DispatchQueue.getSpecific(key: key) ?? "")") }
            .response(queue: queue("own")) { _ in seen.add("own \(DispatchQueue.getSpecific(key: key) ?? "")") }
        // Two queues have no order between them: the handler named last may run first.
        try await eventually(that: "each handler ran, on its own queue") {
            Set(seen.all) == ["progress manager", "text manager", "own own"]
        }
    }

    @Test("the background handler is called when all is delivered, unless the closure replaces it")
    func backgroundCompletionHandler() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let seen = Notes<String>()
        manager.backgroundCompletionHandler = { seen.add("handler") }
        _ = try await manager.request(server.url("/a")).value
        try await eventually(that: "the handler was called") { seen.all == ["handler"] }
        manager.delegate.sessionDidFinishEvents = { _ in seen.add("closure") }
        _ = try await manager.request(server.url("/a")).value
        try await eventually(that: "the closure was called") { seen.all == ["handler", "closure"] }
    }

    // MARK: Creation and release

    @Test("a session with another delegate is refused")
    func foreignDelegate() throws {
        let session = try Session(configuration: .test())
        #expect(SessionManager(session: session, delegate: SessionDelegate()) == nil)
        #expect(SessionManager(session: session, delegate: session.delegate) != nil)
        session.invalidateAndCancel()
    }

    @Test("a manager for a session may bring trust policies for it")
    func policiesForSession() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.selfSigned))
        let session = try Session(configuration: .test())
        let manager = try #require(
            SessionManager(
                session: session, delegate: session.delegate,
                serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": .disableEvaluation])))
        #expect(try await manager.request(nginx.url("/ok", host: "localhost")).string == "fine")
    }

    @Test("the session has a copy of the configuration")
    func configurationIsCopied() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        var configuration = SessionConfiguration.test()
        configuration.userAgent = "first"
        let manager = try SessionManager(configuration: configuration)
        configuration.userAgent = "second"
        _ = try await manager.request(server.url("/a")).value
        #expect(server.requests().first?.header("user-agent") == "first")
    }

    @Test("releasing the manager cancels its requests, and their handlers run")
    func release() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        var manager: SessionManager? = try manager()
        let codes = Notes<TransferError.Code?>()
        let request = try #require(manager).request(server.url("/a"))
        request.response(queue: .inline) { codes.add($0.error?.code) }
        try await eventually(that: "the request was sent") { server.requests().count == 1 }
        manager = nil
        try await eventually(that: "the handler ran") { codes.all == [.cancelled] }
    }

    // MARK: Requests

    @Test("a request is made of URL, method, parameters, encoding and headers")
    func requestOfParts() async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let manager = try manager()
        _ = await manager.request(
            server.url("/a"), method: .put, parameters: ["n": 1], encoding: JSONEncoding(),
            headers: [.accept: "text/plain"]
        ).outcome
        let request = try #require(server.requests().first)
        #expect(request.method == "PUT" && request.header("accept") == "text/plain")
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"n":1}"#)
        #expect(request.header("content-type") == "application/json")
    }

    @Test("parameters may be variables of several types")
    func mixedParameters() async throws {
        let server = try ScriptedServer(["/a": [.status(200)]])
        let manager = try manager()
        let (page, text, isNew) = (2, "x y", true)
        _ = await manager.request(server.url("/a"), parameters: ["page": page, "q": text, "new": isNew]).outcome
        _ = await manager.request(
            server.url("/a"), method: .post, parameters: ["page": page, "tags": [text]], encoding: JSONEncoding.default
        ).outcome
        #expect(server.requests().isEmpty == false)
        let bodies = server.requests(for: "/a").map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies.last == #"{"page":2,"tags":["x y"]}"#)
        #expect(server.requests().first?.path == "/a?new=1&page=2&q=x%20y")
    }

    @Test("a closure may decide the place of a download")
    func placeByClosure() async throws {
        let server = try ScriptedServer(["/a.txt": [.status(200, body: "a")]])
        let manager = try manager()
        let file = try await manager.download(
            server.url("/a.txt"),
            to: { [place] temporary, _ in
                (place.file(temporary.suggestedName), [])
            }
        ).downloadProgress(queue: .inline) { _ in }.value
        #expect(file.path == place.file("a.txt"))
    }

    @Test("a request that cannot be made is returned all the same, and fails through its handlers")
    func failedRequest() async throws {
        let manager = try manager()
        let request = manager.request("", method: .get, parameters: ["a": .double(.infinity)])
        #expect(request.original == nil && request.task == nil)
        #expect(await request.outcome.error?.code == .invalidRequest)
    }

    @Test("an error of the adapter may be retried; without a retrier it is the request's")
    func adapterError() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let calls = Atomic<Int>(0)
        manager.adapter = ClosureAdapter { (_: inout TransferRequest) throws(TransferError) in
            if calls.wrappingAdd(1, ordering: .relaxed).newValue % 2 == 1 {
                throw TransferError(.invalidRequest, "no token yet")
            }
        }
        let error = await manager.request(server.url("/a")).outcome.error
        #expect(error?.code == .invalidRequest && error?.description.contains("no token yet") == true)
        calls.store(0, ordering: .relaxed)
        manager.retrier = CountingRetrier(limit: 1)
        #expect(try await manager.request(server.url("/a")).string == "a")
    }

    // MARK: Retry

    @Test("a request without an original is not retried")
    func retryWithoutOriginal() async throws {
        let manager = try manager()
        let request = manager.request("", method: .get, parameters: ["a": .double(.infinity)])
        _ = await request.outcome
        #expect(!manager.retry(request))
    }

    @Test("a finished request is retried: its data are reset, the count rises, new handlers wait for the new end")
    func retryFinished() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "first"), .status(200, body: "second")]])
        let manager = try manager()
        let seen = Notes<String>()
        let request = manager.request(server.url("/a")).responseString(queue: .inline) { seen.add($0.value ?? "") }
        #expect(try await request.string == "first")
        #expect(manager.retry(request))
        #expect(try await request.string == "second")
        #expect(request.retryCount == 1 && seen.all == ["first"])
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("a running request and one that never ran are not retried")
    func retryRunning() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        let manager = try manager()
        let request = manager.request(server.url("/a"))
        #expect(!manager.retry(request))
        request.resume()
        try await eventually(that: "the request was sent") { server.requests().count == 1 }
        #expect(!manager.retry(request))
        request.cancel()
        _ = await request.outcome
    }

    @Test("a failed download and a form are retried after their end")
    func retryDownloadAndForm() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 500_000), .serve(resource)],
            "/form": [.status(500), .status(200, body: "ok")],
        ])
        let manager = try manager()
        let download = manager.download(server.url("/f"), to: place.file("f"))
        #expect(await download.outcome.error != nil)
        #expect(download.retry())
        #expect(try await bytes(ofFileAt: download.value.path) == resource.bytes(0..<resource.size))
        #expect(server.requests(for: "/f").last?.header("range") != nil)
        let form = manager.upload(with: server.url("/form")) { $0.append("value", name: "field") }.validate()
        #expect(await form.outcome.error?.httpStatus == 500)
        #expect(form.retry())
        #expect(try await form.string == "ok")
        let bodies = server.requests(for: "/form").map(\.body)
        #expect(bodies.count == 2 && bodies[0].count == bodies[1].count && !bodies[0].isEmpty)
    }

    @Test("retrying after the session's end is refused, and leaves nothing behind")
    func retryAfterEnd() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let request = manager.request(server.url("/a"))
        _ = try await request.value
        manager.session.invalidateAndCancel()
        #expect(!manager.retry(request))
    }

    @Test("the background handler is called again after a retried request")
    func backgroundHandlerAfterRetry() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let manager = try manager()
        let calls = Notes<Int>()
        manager.backgroundCompletionHandler = { calls.add(1) }
        let request = manager.request(server.url("/a"))
        _ = try await request.value
        try await eventually(that: "the handler was called") { calls.all.count == 1 }
        #expect(request.retry())
        _ = try await request.value
        try await eventually(that: "the handler was called again") { calls.all.count == 2 }
    }

    // MARK: Forms

    @Test("a form in memory succeeds with its request, and without a file", arguments: [10_000_000, 10])
    func encodingResult(threshold: Int64) async throws {
        let server = try ScriptedServer(["/form": [.status(200, body: "ok")]])
        let manager = try manager()
        let result = await withCheckedContinuation { done in
            manager.upload(
                multipartFormData: { $0.append("value", name: "field") }, usingThreshold: threshold,
                temporaryDirectory: place.path, with: server.url("/form")
            ) { done.resume(returning: $0) }
        }
        guard case .success(let request, let isStreaming, let file) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(isStreaming == (threshold == 10) && (file != nil) == isStreaming)
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty == !isStreaming)
        #expect(try await request.string == "ok")
        let body = String(decoding: server.requests().first?.body ?? [], as: UTF8.self)
        #expect(body.contains("value"))
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
    }

    @Test("a form that cannot be encoded, or a URL that is none, is a failure")
    func encodingFailure() async throws {
        let manager = try manager()
        func failure(
            _ url: String, _ fill: @escaping @Sendable (inout MultipartFormData) -> Void
        ) async -> TransferError? {
            let result = await withCheckedContinuation { done in
                manager.upload(multipartFormData: fill, with: url) { done.resume(returning: $0) }
            }
            if case .failure(let error) = result { return error } else { return nil }
        }
        let missing = place.file("missing")
        #expect(await failure("http://127.0.0.1:1/") { $0.append(fileAt: missing, name: "f") } != nil)
    }
}
