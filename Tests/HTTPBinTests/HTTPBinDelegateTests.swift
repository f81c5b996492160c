import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: closures of the session's delegate", .timeLimit(.minutes(1)))
struct HTTPBinDelegateTests {
    let client: Client
    private let directory: TemporaryDirectory

    init() async throws {
        client = try await Client()
        directory = try TemporaryDirectory()
    }

    private var manager: SessionManager { client.manager }
    private var delegate: SessionDelegate { client.manager.delegate }

    /// Sets the closure that decides on a response, in one of its forms.
    private func decide(later: Bool, _ decide: @escaping @Sendable (DataTask, ResponseHead) -> ResponseDisposition) {
        if later {
            delegate.dataTaskDidReceiveResponseWithCompletion = { task, head, completion in
                Task.detached { completion(decide(task, head)) }
            }
        } else {
            delegate.dataTaskDidReceiveResponse = decide
        }
    }

    // MARK: Responses

    @Test("a closure sees the head of each response, and allows it", arguments: [true, false])
    func allowed(later: Bool) async throws {
        let seen = Record<String>()
        decide(later: later) { task, head in
            seen.add("\(task.originalRequest.url) \(head.status)")
            return .allow
        }
        #expect(try await manager.request(client.url("/range/1000")).value.count == 1000)
        #expect(seen.all == ["\(client.url("/range/1000")) 200"])
    }

    @Test(
        "a closure sees the final response, and not those of redirects and challenges",
        arguments: ["/redirect/2", "/basic-auth/user/passwd"])
    func finalOnly(_ path: String) async throws {
        let seen = Record<Int>()
        decide(later: false) { _, head in
            seen.add(head.status)
            return .allow
        }
        let outcome = await manager.request(client.url(path)).authenticate(user: "user", password: "passwd").outcome
        #expect(outcome.status == 200 && seen.all == [200])
    }

    @Test("a closure may cancel a request by the head of its response", arguments: [true, false])
    func cancelled(later: Bool) async throws {
        decide(later: later) { _, _ in .cancel }
        let outcome = await manager.request(client.url("/range/1000")).outcome
        #expect(outcome.code == .cancelled && outcome.data?.isEmpty != false)
    }

    @Test("a closure may make a data request a download", arguments: [true, false])
    func download(later: Bool) async throws {
        let path = directory.file("file")
        decide(later: later) { _, _ in .download(to: .path(path)) }
        let tasks = Record<Bool>()
        delegate.dataTaskDidBecomeDownloadTask = { data, download in
            tasks.add(data.originalRequest.url == download.originalRequest.url)
        }
        let request = manager.request(client.url("/range/50000"))
        #expect(await request.outcome.error == nil && tasks.all == [true] && request.task is DownloadTask)
        #expect(try contents(ofFileAt: path) == alphabet(50_000))
    }

    @Test("a closure may take the body, which the response then does not have")
    func receivedData() async throws {
        let pieces = Record<[UInt8]>()
        delegate.dataTaskDidReceiveData = { _, bytes in pieces.add(bytes) }
        let outcome = await manager.request(client.url("/range/50000?chunk_size=1000")).outcome
        #expect(outcome.error == nil && pieces.all.flatMap { $0 } == alphabet(50_000) && outcome.data?.isEmpty != false)
    }

    // MARK: Any task

    @Test("a closure receives the metrics of each attempt", arguments: [0, 2])
    func metrics(_ retries: Int) async throws {
        let statuses = Record<[Int?]>()
        delegate.taskDidFinishCollectingMetrics = { _, metrics in statuses.add(metrics.exchanges.map(\.status)) }
        let request = manager.request(client.url("/status/302")).validate { _, _, _ in .failure(OwnError()) }
            .retry(with: LimitedRetrier(retries))
        #expect(await request.outcome.code == .validationFailed)
        #expect(statuses.all == Array(repeating: [302, 302, 200], count: retries + 1))
        #expect(request.metrics.exchanges.count == 3 * (retries + 1))
    }

    @Test(
        "a closure for the end of tasks is called for each kind of request", arguments: ["data", "upload", "download"])
    func completed(_ kind: String) async throws {
        let ends = Record<String>()
        delegate.taskDidComplete = { task, error in ends.add("\(task.originalRequest.url) \(error == nil)") }
        switch kind {
        case "data": _ = await manager.request(client.url("/get")).outcome
        case "upload": _ = await manager.upload(.text("a"), with: client.url("/anything")).outcome
        default: _ = await manager.download(client.url("/range/1"), to: directory.file("file")).outcome
        }
        let path = ["data": "/get", "upload": "/anything"][kind] ?? "/range/1"
        #expect(ends.all == ["\(client.url(path)) true"])
    }

    @Test("a closure for the end of tasks is told the error of the transport")
    func completedWithError() async throws {
        let codes = Record<TransferError.Code?>()
        delegate.taskDidComplete = { _, error in codes.add(error?.code) }
        let port = try FreePort.next()
        _ = await manager.request("http://127.0.0.1:\(port)/").outcome
        #expect(codes.all == [.cannotConnect])
    }

    @Test("a closure for the end of tasks is called after validation and retries", arguments: [0, 2])
    func completedAfterRetries(_ retries: Int) async throws {
        let ends = Record<Int?>()
        delegate.taskDidComplete = { _, error in ends.add(error?.httpStatus) }
        let request = manager.request(client.url("/status/500")).validate().retry(with: LimitedRetrier(retries))
        #expect(await request.outcome.error?.httpStatus == 500 && request.retryCount == retries)
        #expect(ends.all == [500])
    }

    @Test("a delegate knows the request of a task while the task runs")
    func requestOfTask() async throws {
        let request = manager.request(client.url("/get"))
        let found = Record<Bool>()
        let delegate = delegate
        delegate.dataTaskDidReceiveResponse = { [weak request] task, _ in
            found.add(delegate[task] === request)
            return .allow
        }
        _ = await request.outcome
        #expect(found.all == [true] && delegate.requestCount == 0)
    }

    @Test("a delegate responds to the callbacks that have a closure")
    func responds() {
        #expect(!delegate.responds(to: .taskDidComplete))
        delegate.taskDidComplete = { _, _ in }
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { $3($2) }
        #expect(delegate.responds(to: .taskDidComplete) && delegate.responds(to: .taskWillPerformHTTPRedirection))
        delegate.taskDidComplete = nil
        #expect(!delegate.responds(to: .taskDidComplete))
    }

    @Test("a closure that is taken away is not called any more")
    func removed() async throws {
        let calls = Record<Int>()
        delegate.taskDidFinishCollectingMetrics = { _, _ in calls.add(1) }
        _ = await manager.request(client.url("/get")).outcome
        delegate.taskDidFinishCollectingMetrics = nil
        _ = await manager.request(client.url("/get")).outcome
        #expect(calls.count == 1)
    }

    @Test("the closure for the end of all events replaces the manager's handler")
    func finishedEvents() async throws {
        let calls = Record<String>()
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        manager.backgroundCompletionHandler = { calls.add("handler") }
        delegate.sessionDidFinishEvents = { _ in
            calls.add("closure")
            continuation.yield()
        }
        _ = await manager.request(client.url("/get")).outcome
        for await _ in stream { break }
        #expect(calls.all == ["closure"])
    }

    // MARK: Bodies

    @Test(
        "a closure supplies the stream of a body that is sent again",
        arguments: ["session", "sessionLater", "request", "none"])
    func newStream(_ place: String) async throws {
        @Sendable func stream(_ text: String) -> BodyStream {
            BodyStream(length: 3) {
                AsyncStream<[UInt8]> { continuation in
                    continuation.yield(Array(text.utf8))
                    continuation.finish()
                }
            }
        }
        let request = client.request("/redirect-to?url=/anything&status_code=307", .put)
        let upload = manager.upload(.stream(stream("old")), with: request)
        switch place {
        case "session": delegate.taskNeedNewBodyStream = { _ in stream("new") }
        case "sessionLater":
            delegate.taskNeedNewBodyStreamWithCompletion = { _, completion in
                Task.detached { completion(stream("new")) }
            }
        case "request": upload.delegate.taskNeedNewBodyStream = { _ in stream("new") }
        default: break
        }
        let echo = try await upload.validate().decoded(as: JSONValue.self)
        #expect(echo["data"]?.text == (place == "none" ? "old" : "new"))
    }

    // MARK: Downloads

    @Test("closures are told the bytes and the file of a download")
    func downloadClosures() async throws {
        let (pieces, totals, files) = (Record<Int64>(), Record<Int64>(), Record<PublishedFile>())
        let received = Record<Int>()
        delegate.downloadTaskDidWriteData = { _, bytes, total, expected in
            pieces.add(bytes)
            totals.add(total)
            if expected != 100_000 { totals.add(-1) }
        }
        delegate.downloadTaskDidReceiveAll = { _ in received.add(1) }
        delegate.downloadTaskDidFinishDownloading = { _, file in files.add(file) }
        let download = manager.download(client.url("/range/100000"), to: directory.file("file"))
        let file = try await download.value
        #expect(pieces.all.reduce(0, +) == 100_000 && totals.all == totals.all.sorted() && totals.all.last == 100_000)
        #expect(received.count == 1 && files.all == [file])
    }

    @Test("a download that fails has no file for the closure", arguments: [404, 500])
    func failedDownload(_ status: Int) async throws {
        let files = Record<PublishedFile>()
        delegate.downloadTaskDidFinishDownloading = { _, file in files.add(file) }
        let outcome = await manager.download(client.url("/status/\(status)"), to: directory.file("file")).outcome
        #expect(outcome.code == .httpStatus && files.count == 0)
    }

    @Test("a closure is told where a download resumes")
    func resumedDownload() async throws {
        let nginx = try await Nginx()
        let resource = Resource(size: 2_000_000)
        try nginx.publish(resource, as: "file")
        var request = TransferRequest(url: nginx.url("/file"))
        request.segments = .one
        manager.startRequestsImmediately = false
        let first = manager.download(request, to: directory.file("file")).limit(to: 100_000)
        manager.startRequestsImmediately = true
        first.resume()
        for await progress in first.progress where progress.completedBytes > 0 { break }
        let data = try #require(await first.cancelProducingResumeData())
        let offsets = Record<Int64>()
        delegate.downloadTaskDidResumeAtOffset = { _, offset, expected in
            offsets.add(offset)
            if expected != 2_000_000 { offsets.add(-1) }
        }
        _ = try await manager.download(resumingWith: data).value
        #expect(offsets.all == [data.ranges.contiguousEnd])
    }

    // MARK: Tasks without a manager

    @Test("a session runs tasks without requests", arguments: ["data", "upload", "download"])
    func tasks(_ kind: String) async throws {
        let session = manager.session
        let (ends, continuation) = AsyncStream.makeStream(of: TransferError?.self)
        delegate.taskDidComplete = { _, error in continuation.yield(error) }
        let task: any SessionTask =
            switch kind {
            case "data": session.dataTask(with: client.request("/range/1000"))
            case "upload": session.uploadTask(with: client.request("/post", .post), from: .text("text"))
            default: session.downloadTask(with: client.request("/range/1000"), to: .path(directory.file("file")))
            }
        #expect(task.state == .suspended)
        task.resume()
        for await error in ends {
            #expect(error == nil)
            break
        }
        #expect(task.state == .completed && task.response?.status == 200)
        if let data = task as? DataTask { #expect(!data.data.isEmpty) }
        if let download = task as? DownloadTask { #expect(download.file?.size == 1000) }
    }
}
