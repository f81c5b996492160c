import Dispatch
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: how requests start, end and report", .timeLimit(.minutes(1)))
struct HTTPBinLifeCycleTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    // MARK: Handlers

    @Test("handlers run in the order in which they were added", arguments: ["shared", "inline", "dispatch"])
    func order(_ name: String) async throws {
        let queue: HandlerQueue =
            switch name {
            case "shared": .shared
            case "inline": .inline
            default: .dispatch(DispatchQueue(label: "handlers"))
            }
        let record = Record<Int>()
        let request = manager.request(client.url("/get"))
        for number in 0..<9 { request.response(queue: queue) { _ in record.add(number) } }
        await withCheckedContinuation { continuation in
            request.response(queue: queue) { _ in continuation.resume() }
        }
        #expect(record.all == Array(0..<9))
    }

    @Test("a handler that is added after the end runs at once")
    func lateHandler() async throws {
        let request = manager.request(client.url("/get"))
        _ = await request.outcome
        let status = await withCheckedContinuation { continuation in
            request.response { continuation.resume(returning: $0.head?.status) }
        }
        #expect(status == 200)
    }

    @Test("each kind of handler receives the same response")
    func kinds() async throws {
        let record = Record<String>()
        let request = manager.request(client.url("/uuid"))
            .response(queue: .inline) { record.add(String(decoding: ($0.value ?? nil) ?? Data(), as: UTF8.self)) }
            .responseData(queue: .inline) { record.add(String(decoding: $0.value ?? Data(), as: UTF8.self)) }
            .responseString(queue: .inline) { record.add($0.value ?? "") }
            .responseJSON(queue: .inline) { record.add($0.value?["uuid"]?.text ?? "") }
            .responseDecodable(of: [String: String].self, queue: .inline) { record.add($0.value?["uuid"] ?? "") }
        _ = await request.outcome
        let text = try #require(record.all.first)
        #expect(record.count == 5 && record.all[..<3].allSatisfy { $0 == text })
        #expect(record.all[3...].allSatisfy { !$0.isEmpty && text.contains($0) })
    }

    @Test("a value that is awaited twice is the same, and only one request is sent")
    func awaitedTwice() async throws {
        let request = manager.request(client.url("/uuid"))
        let first = try await request.string
        #expect(try await request.string == first)
        #expect(request.metrics.exchanges.count == 1)
    }

    @Test("the final counts come before the handlers and the awaited value", arguments: ["data", "upload", "download"])
    func finalProgress(_ kind: String) async throws {
        let directory = try TemporaryDirectory()
        let record = Record<String>()
        @Sendable func add(_ progress: TransferProgress.Snapshot) { record.add("\(progress.fractionCompleted ?? 0)") }
        switch kind {
        case "data":
            let request = manager.request(client.url("/range/50000")).onProgress(queue: .inline) { add($0) }
                .response(queue: .inline) { _ in record.add("handler") }
            _ = try await request.value
        case "upload":
            let request = manager.upload(.text("text"), with: client.url("/post")).onProgress(queue: .inline) {
                add($0)
            }
            .response(queue: .inline) { _ in record.add("handler") }
            _ = try await request.value
        default:
            let request = manager.download(client.url("/range/50000"), to: directory.file("file"))
                .onProgress(queue: .inline) { add($0) }.response(queue: .inline) { _ in record.add("handler") }
            _ = try await request.value
        }
        let all = record.all
        #expect(all.suffix(2) == ["1.0", "handler"] && all.count { $0 == "handler" } == 1)
    }

    // MARK: Cancelling

    @Test("a request that is cancelled before its start sends nothing")
    func cancelledEarly() async throws {
        let request = manager.request(client.url("/get"))
        request.cancel()
        let outcome = await request.outcome
        #expect(outcome.code == .cancelled && outcome.metrics.exchanges.isEmpty && request.isCancelled)
    }

    @Test("a request that is cancelled while the server responds ends as cancelled")
    func cancelledDuring() async throws {
        let request = manager.request(client.url("/drip?numbytes=10&duration=10"))
        for try await progress in request.progress where progress.completedBytes > 0 {
            request.cancel()
            break
        }
        #expect(await request.outcome.code == .cancelled)
    }

    @Test("a request that is complete is not cancelled any more")
    func cancelledLate() async throws {
        let request = manager.request(client.url("/get"))
        _ = try await request.value
        request.cancel()
        #expect(await request.outcome.error == nil && !request.isCancelled)
    }

    @Test("cancelling the Swift task that waits cancels the request")
    func cancelledTask() async throws {
        let request = manager.request(client.url("/delay/10"))
        let events = manager.session.events.stream()
        let task = Task { await request.outcome }
        for await case .didResume in events { break }
        task.cancel()
        #expect(await task.value.code == .cancelled && request.isCancelled)
    }

    @Test("cancelling one of two requests leaves the other alone")
    func cancelledAlone() async throws {
        let (first, second) = (manager.request(client.url("/delay/10")), manager.request(client.url("/get")))
        first.resume()
        first.cancel()
        #expect(await second.outcome.error == nil)
        #expect(await first.outcome.code == .cancelled)
    }

    // MARK: Suspending

    @Test("a suspended request continues when it is resumed")
    func suspended() async throws {
        let request = manager.request(client.url("/range/100000?chunk_size=1000"))
        request.resume().suspend()
        #expect(request.task?.state == .suspended)
        request.resume()
        #expect(await request.outcome.data?.count == 100_000)
    }

    @Test("a suspended request can be cancelled")
    func suspendedAndCancelled() async throws {
        let request = manager.request(client.url("/delay/9"))
        request.resume().suspend().cancel()
        #expect(await request.outcome.code == .cancelled)
    }

    // MARK: Properties

    @Test("a request shows its original, its task and its response")
    func properties() async throws {
        let request = manager.request(client.url("/redirect/1"))
        #expect(request.original?.url == client.url("/redirect/1") && request.task == nil && request.response == nil)
        _ = try await request.value
        #expect(request.original?.url == client.url("/redirect/1") && request.request?.url == client.url("/get"))
        #expect(request.task?.originalRequest.url == client.url("/redirect/1"))
        #expect(request.task?.state == .completed && request.response?.status == 200 && request.retryCount == 0)
    }

    @Test("the description has method, URL and status")
    func description() async throws {
        let request = manager.request(client.request("/status/404", .post))
        #expect(request.description == "POST \(client.url("/status/404"))")
        _ = await request.outcome
        #expect(request.description == "POST \(client.url("/status/404")) (404)")
    }

    @Test(
        "the debug description is a command of curl",
        arguments: [
            (HTTPRequest.Method.get, ""), (.head, " --head"), (.post, " --request 'POST'"), (.put, " --request 'PUT'"),
        ])
    func debugDescription(_ method: HTTPRequest.Method, _ option: String) {
        let text = manager.request(client.request("/anything", method)).debugDescription
        #expect(text.hasPrefix("curl --include\(option) --http1.1 --header 'User-Agent: "))
        #expect(text.hasSuffix(" '\(client.url("/anything"))'"))
    }

    @Test(
        "the debug description repeats fields, quoted for a shell",
        arguments: [("X-A", "b", "--header 'X-A: b'"), ("X-A", "it's", #"--header 'X-A: it'\''s'"#)])
    func debugFields(_ name: String, _ value: String, _ words: String) throws {
        let fields = HTTPFields([HTTPField(name: try #require(HTTPField.Name(name)), value: value)])
        #expect(manager.request(client.request("/get", .get, fields)).debugDescription.contains(words))
    }

    @Test("descriptions have no passwords, tokens and cookies")
    func secrets() {
        var request = client.request(
            "/get?token=hidden1", .get, [.authorization: "Bearer hidden2", .cookie: "a=hidden3"])
        request.url = request.url.replacing("http://", with: "http://user:hidden4@")
        request.credential = Credential(user: "user", password: "hidden5")
        let made = manager.request(request)
        #expect(!"\(made) \(made.debugDescription) \(request)".contains("hidden"))
    }

    // MARK: Invalid requests

    @Test(
        "an invalid URL fails at the handlers of a data request",
        arguments: ["", "/relative", "http://", "http://[::1", "http://a:99999/", "gopher://127.0.0.1/"])
    func invalidURL(_ url: String) async throws {
        let outcome = await manager.request(url).outcome
        #expect([.invalidRequest, .protocolNotAllowed].contains(outcome.code) && outcome.head == nil)
    }

    @Test("an invalid URL fails at the handlers of an upload", arguments: ["data", "file", "stream", "form"])
    func invalidUpload(_ kind: String) async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("text", to: "file")
        let upload =
            switch kind {
            case "data": manager.upload(.text("text"), with: "http://")
            case "file": manager.upload(try UploadSource(path: file), with: "http://")
            case "stream": manager.upload(.pieces(["text"]), with: "http://")
            default: manager.upload(with: "http://") { $0.append("b", name: "a") }
            }
        #expect(await upload.outcome.code == .invalidRequest)
    }

    @Test("an invalid URL fails at the handlers of a download, which creates nothing")
    func invalidDownload() async throws {
        let directory = try TemporaryDirectory()
        let outcome = await manager.download("http://", to: directory.file("file")).outcome
        #expect(outcome.code == .invalidRequest && TemporaryDirectory.names(in: directory.path).isEmpty)
    }

    @Test("a URL that cannot be converted fails the request with the error of the conversion")
    func conversion() async throws {
        struct Broken: URLConvertible, RequestConvertible {
            func asURLText() throws(TransferError) -> String { throw TransferError(.invalidRequest, "no URL") }
            func asRequest() throws(TransferError) -> TransferRequest {
                throw TransferError(.invalidRequest, "no request")
            }
        }
        #expect(await manager.request(Broken(), parameters: ["a": 1]).outcome.error?.message == "no URL")
        let request = manager.request(Broken())
        #expect(request.original == nil)
        #expect(await request.outcome.code == .invalidRequest)
    }

    @Test("a URL of Foundation is as good as text")
    func foundationURL() async throws {
        let url = try #require(URL(string: client.url("/get?a=b")))
        #expect(try await manager.request(url).decoded(as: JSONValue.self)["args"]?["a"]?.text == "b")
    }
}
