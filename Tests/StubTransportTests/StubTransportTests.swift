import Curl
import HTTPTypes
import StubTransport
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Requests to a stub in place of servers")
struct StubTransportTests {
    private let stub = StubTransport()
    private let lookups = Lookups()
    private let manager: SessionManager

    init() throws {
        manager = try Self.manager(stub, lookups)
    }

    /// The names that the resolver was asked for.
    private final class Lookups: Sendable {
        let names = Mutex<[String]>([])
    }

    private static func manager(
        _ stub: any StubResponder, _ lookups: Lookups, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.transportStub = stub
        change(&configuration)
        let delegate = SessionDelegate()
        let resolver = Resolver { name in
            lookups.names.withLock { $0.append(name) }
            return .failure(.unknownName)
        }
        let session = try Session(configuration: configuration, delegate: delegate, resolver: resolver)
        return try #require(SessionManager(session: session, delegate: delegate))
    }

    // MARK: Data

    @Test("a response is decoded, and the request is recorded; no name is resolved")
    func json() async throws {
        struct User: Decodable, Sendable { var name: String }
        stub.on("GET", "https://api.example.org/users") { _ in .json(#"[{"name": "Ada"}]"#) }
        let request = manager.request(
            "https://api.example.org/users", parameters: ["page": 2], headers: [.accept: "application/json"])
        let users = try await request.validate().decoded(as: [User].self)
        #expect(users.map(\.name) == ["Ada"])
        #expect(request.response?.status == 200)
        #expect(stub.requests.map(\.url) == ["https://api.example.org/users?page=2"])
        #expect(stub.requests.first?.headerFields[.accept] == "application/json")
        #expect(stub.requests.first?.headerFields[.userAgent] != nil)
        #expect(stub.unexpectedRequests.isEmpty)
        #expect(request.metrics.exchanges.map(\.status) == [200])
        #expect(request.metrics.last?.isFromCache == false)
        #expect(lookups.names.withLock { $0 } == [])
    }

    @Test("a request without a rule fails and is recorded")
    func unexpected() async throws {
        stub.on("POST", "https://api.example.org/users") { _ in .status(201) }
        let error = await manager.request("https://api.example.org/users?token=secret").outcome.error
        #expect(error?.code == .invalidRequest)
        #expect(error?.message == "the stub has no rule for GET https://api.example.org/users?token=…")
        #expect(stub.unexpectedRequests.count == 1)
        #expect(lookups.names.withLock { $0 } == [])
    }

    @Test("a request without a rule goes to the network if the stub says so, with its body")
    func network() async throws {
        let server = try ScriptedServer(["/in": [.status(200, body: "from the server")]])
        let stub = StubTransport(unexpected: .network)
        let manager = try Self.manager(stub, lookups)
        let text = try await manager.upload(.data(Array("body".utf8)), with: server.url("/in")).string
        #expect(text == "from the server")
        #expect(server.requests().map(\.body).map { String(decoding: $0, as: UTF8.self) } == ["body"])
        #expect(stub.unexpectedRequests.map(\.body) == [Array("body".utf8)])
    }

    @Test("an error of a handler is the error of the request")
    func failures() async throws {
        struct Own: Error {}
        stub.on(nil, "https://a.example/dns") { _ in .failure(TransferError(.unknownHost, "no such name")) }
        stub.on(nil, "https://a.example/thrown") { _ in throw TransferError(.stalled, "silence") }
        stub.on(nil, "https://a.example/own") { _ in throw Own() }
        #expect(await manager.request("https://a.example/dns").outcome.error?.code == .unknownHost)
        #expect(await manager.request("https://a.example/thrown").outcome.error?.code == .stalled)
        let own = await manager.request("https://a.example/own").outcome.error
        #expect(own?.code == .internal && own?.underlying is Own)
    }

    @Test("validators judge the response")
    func validation() async throws {
        stub.on("GET", "https://a.example/") { _ in .text("gone", status: 410) }
        let error = await manager.request("https://a.example").validate().outcome.error
        #expect(error?.code == .httpStatus && error?.httpStatus == 410)
    }

    @Test("a redirect leads to another rule, and its cookie is sent")
    func redirect() async throws {
        stub.on("GET", "https://a.example/old") { _ in
            .status(302, fields: [.location: "/new", .setCookie: "id=7; Path=/"])
        }
        stub.on("GET", "https://a.example/new") { .text($0.headerFields[.cookie] ?? "") }
        let request = manager.request("https://a.example/old")
        #expect(try await request.string == "id=7")
        #expect(request.request?.url == "https://a.example/new")
        #expect(request.metrics.redirectCount == 1)
    }

    @Test("redirects without an end fail as those of a server do")
    func endlessRedirects() async throws {
        stub.on("GET", "https://a.example/*") { .redirect(to: $0.url + "x") }
        let error = await manager.request("https://a.example/").outcome.error
        #expect(error?.code == .tooManyRedirects)
        #expect(stub.requests.count == 21)
    }

    @Test("a challenge is answered with the request's credential")
    func challenge() async throws {
        stub.on("GET", "https://a.example/secret") { request in
            request.headerFields[.authorization] == nil ? .challenge() : .text("welcome")
        }
        let request = manager.request("https://a.example/secret").authenticate(user: "ada", password: "pw")
        #expect(try await request.validate().string == "welcome")
        #expect(stub.requests.map { $0.headerFields[.authorization] } == [nil, "Basic YWRhOnB3"])
    }

    @Test("a retrier repeats a request, and results follow in their order")
    func retries() async throws {
        stub.on("GET", "https://a.example/", inOrder: [.status(503), .failure(.cannotReach), .text("at last")])
        manager.retrier = ClosureRetrier { request, _ in request.retryCount < 3 ? .retry(after: 0) : .doNotRetry }
        let request = manager.request("https://a.example/").validate()
        #expect(try await request.string == "at last")
        #expect(request.retryCount == 2)
    }

    @Test("a delayed response arrives later, and can be cancelled before")
    func delay() async throws {
        stub.on("GET", "https://a.example/soon") { _ in .text("now").delayed(by: 20) }
        stub.on("GET", "https://a.example/never") { _ in .text("never").delayed(by: 3_600_000) }
        #expect(try await manager.request("https://a.example/soon").string == "now")
        let request = manager.request("https://a.example/never").resume()
        try await eventually(that: "the stub has the request") { stub.requests.count == 2 }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
    }

    @Test("a request can be cancelled while the handler waits, and its result is ignored")
    func cancelWhileAsked() async throws {
        let gate = AsyncStream.makeStream(of: Void.self)
        stub.on("GET", "https://a.example/") { _ in
            for await _ in gate.stream { break }
            return .text("late")
        }
        let request = manager.request("https://a.example/").resume()
        try await eventually(that: "the stub has the request") { stub.requests.count == 1 }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        gate.continuation.finish()
    }

    @Test("a suspended request receives its body after it is resumed")
    func suspension() async throws {
        stub.on("GET", "https://a.example/") { _ in .text("body").delayed(by: 20) }
        let request = manager.request("https://a.example/").resume()
        request.suspend()
        try await eventually(that: "the head is there") { request.response != nil }
        #expect(!request.delegate.isComplete)
        request.resume()
        #expect(try await request.string == "body")
    }

    @Test("a body is read piece by piece at the reader's pace")
    func body() async throws {
        let bytes = [UInt8](repeating: 7, count: 1 << 20)
        stub.on("GET", "https://a.example/") { _ in .data(bytes) }
        var count = 0
        for try await piece in manager.request("https://a.example/").body { count += piece.count }
        #expect(count == bytes.count)
    }

    @Test("a body is framed and decoded like one from a server")
    func framing() async throws {
        let gzip: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x4B, 0x4C, 0x4A, 6, 0, 0xC2, 0x41, 0x24, 0x35, 3, 0, 0, 0,
        ]
        stub.on("GET", "https://a.example/gzip") { _ in .data(gzip, fields: [.contentEncoding: "gzip"]) }
        stub.on("GET", "https://a.example/damaged") { _ in
            .data(Array(gzip.dropLast(9)), fields: [.contentEncoding: "gzip"])
        }
        stub.on("GET", "https://a.example/short") { _ in .data([1, 2], fields: [.contentLength: "3"]) }
        stub.on("GET", "https://a.example/long") { _ in .data([1, 2, 3, 4], fields: [.contentLength: "3"]) }
        stub.on("HEAD", "https://a.example/long") { _ in .data([1, 2, 3, 4]) }
        #expect(try await manager.request("https://a.example/gzip").string == "abc")
        #expect(await manager.request("https://a.example/damaged").outcome.error?.code == .truncated)
        #expect(await manager.request("https://a.example/short").outcome.error?.code == .truncated)
        #expect(Array(try await manager.request("https://a.example/long").value) == [1, 2, 3])
        #expect(try await manager.request("https://a.example/long", method: .head).value.isEmpty)
    }

    @Test("the session's cache stores and validates the responses of a stub")
    func cache() async throws {
        let manager = try Self.manager(stub, lookups) { $0.responseCache = ResponseCache(capacity: 1 << 20) }
        stub.on("GET", "https://a.example/") { request in
            request.headerFields[.ifNoneMatch] == "\"1\""
                ? .status(304, fields: [.eTag: "\"1\""])
                : .text("stored", fields: [.eTag: "\"1\"", .cacheControl: "no-cache"])
        }
        #expect(try await manager.request("https://a.example/").string == "stored")
        let second = manager.request("https://a.example/")
        #expect(try await second.string == "stored")
        #expect(stub.requests.count == 2)
        #expect(second.metrics.exchanges.map(\.isFromCache) == [false, true])
    }

    @Test("file servers and streams fail at once, without a connection")
    func otherProtocols() async throws {
        #expect(await manager.request("ftp://a.example/file").outcome.error?.code == .protocolNotAllowed)
        #expect(await manager.stream(host: "a.example", port: 25).outcome.error?.code == .protocolNotAllowed)
        #expect(lookups.names.withLock { $0 } == [])
    }

    // MARK: Uploads

    @Test("the stub gets the body from memory, a file, a stream and a form")
    func uploads() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("from a file", to: "body")
        stub.on("POST", "https://a.example/in") { .data($0.body) }
        let url = "https://a.example/in"
        #expect(try await manager.upload(.data(Array("memory".utf8)), with: url).string == "memory")
        #expect(try await manager.upload(try UploadSource(path: path), with: url).string == "from a file")
        let stream = RequestBody.stream(
            BodyStream {
                AsyncStream { continuation in
                    for piece in ["a ", "stream"] { continuation.yield(Array(piece.utf8)) }
                    continuation.finish()
                }
            })
        #expect(try await manager.upload(stream, with: url).string == "a stream")
        let form = manager.upload(with: url) { $0.append("a title", name: "title") }
        #expect(try await form.string.contains("a title"))
        #expect(stub.requests.last?.headerFields[.contentType]?.hasPrefix("multipart/form-data") == true)
    }

    @Test("a body is sent again after a redirect and a challenge")
    func repeatedBodies() async throws {
        stub.on("PUT", "https://a.example/in") { _ in .redirect(to: "/there", status: 307) }
        stub.on("PUT", "https://a.example/there") { request in
            request.headerFields[.authorization] == nil ? .challenge() : .data(request.body)
        }
        let request = TransferRequest(url: "https://a.example/in", method: .put)
        let upload = manager.upload(.data(Array("body".utf8)), with: request).authenticate(user: "a", password: "b")
        #expect(try await upload.string == "body")
        #expect(stub.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["body", "body", "body"])
    }

    // MARK: Downloads

    @Test("a download becomes a file, and an error page does not")
    func downloads() async throws {
        let directory = try TemporaryDirectory()
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        stub.on("GET", "https://a.example/big") { .file(content, for: $0) }
        stub.on("GET", "https://a.example/missing") { _ in .text("no such file", status: 404) }
        let file = try await manager.download("https://a.example/big", to: directory.file("big")).value
        #expect(try Self.bytes(ofFileAt: file.path) == content)
        let missing = await manager.download("https://a.example/missing", to: directory.file("missing")).outcome
        #expect(missing.error?.httpStatus == 404)
        #expect(TemporaryDirectory.names(beneath: directory.path) == ["big"])
    }

    @Test("a broken download is resumed where it broke, by a retry and by its resume data")
    func resumption() async throws {
        let directory = try TemporaryDirectory()
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let breaks = Mutex([100_000, 50_000])
        stub.on("GET", "https://a.example/big") { request in
            let whole = StubResult.file(content, for: request)
            guard let count = breaks.withLock({ $0.popLast() }) else { return whole }
            return whole.broken(after: count)
        }
        let first = await manager.download("https://a.example/big", to: directory.file("big")).outcome
        let resumeData = try #require(first.resumeData)
        let second = manager.download(resumingWith: resumeData)
            .retry(with: ClosureRetrier { request, _ in request.retryCount == 0 ? .retry(after: 0) : .doNotRetry })
        let file = try await second.value
        #expect(try Self.bytes(ofFileAt: file.path) == content)
        #expect(second.retryCount == 1)
        #expect(stub.requests.map { $0.headerFields[.range] } == [nil, "bytes=50000-", "bytes=150000-"])
    }

    private static func bytes(ofFileAt path: String) throws -> [UInt8] {
        let source = try UploadSource(path: path)
        var bytes = [UInt8](repeating: 0, count: Int(source.identity.size))
        var count = 0
        while count < bytes.count {
            let piece = try bytes.withUnsafeMutableBytes { space in
                try source.read(into: UnsafeMutableRawBufferPointer(rebasing: space[count...]), at: Int64(count))
            }
            guard piece > 0 else { break }
            count += piece
        }
        return bytes
    }
}

extension TransferError {
    fileprivate static let cannotReach = TransferError(.cannotConnect, "no connection")
}
