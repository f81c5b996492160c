import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: uploads", .timeLimit(.minutes(1)))
struct HTTPBinUploadTests {
    let client: Client
    private let directory: TemporaryDirectory

    init() async throws {
        client = try await Client()
        directory = try TemporaryDirectory()
    }

    private var manager: SessionManager { client.manager }

    /// The kinds of bodies that can be sent.
    enum Kind: String, CaseIterable, Sendable { case data, file, stream, streamWithLength }

    private func body(_ text: String, _ kind: Kind) throws -> RequestBody {
        switch kind {
        case .data: .text(text)
        case .file: .file(try UploadSource(path: try directory.write(text, to: "source")))
        case .stream: .pieces([text])
        case .streamWithLength: .pieces([text], length: Int64(text.utf8.count))
        }
    }

    private func echo(_ body: RequestBody, _ request: TransferRequest) async throws -> JSONValue {
        try await manager.upload(body, with: request).validate().decoded()
    }

    // MARK: What is sent

    @Test("a body of each kind and size arrives", arguments: Kind.allCases, [1, 1000, 65_537, 400_000])
    func bodies(_ kind: Kind, _ size: Int) async throws {
        let text = String(decoding: alphabet(size), as: UTF8.self)
        let echo = try await echo(body(text, kind), client.request("/post", .post))
        #expect(echo["data"]?.text == text)
        #expect(echo.field("Content-Length") == (kind == .stream ? nil : String(size)))
        #expect(echo.field("Transfer-Encoding") == (kind == .stream ? "chunked" : nil))
    }

    @Test("an empty body arrives as one", arguments: [Kind.data, .file, .streamWithLength])
    func empty(_ kind: Kind) async throws {
        let echo = try await echo(body("", kind), client.request("/post", .post))
        #expect(echo["data"]?.text == "" && echo.field("Content-Length") == "0")
    }

    @Test(
        "the body is sent with the method of the request",
        arguments: [.post, .put, .patch, .delete] as [HTTPRequest.Method])
    func method(_ method: HTTPRequest.Method) async throws {
        let echo = try await echo(.text("text"), client.request("/anything", method))
        #expect(echo["method"]?.text == method.rawValue && echo["data"]?.text == "text")
    }

    @Test("a URL alone is sent to with POST")
    func url() async throws {
        let echo = try await manager.upload(.text("text"), with: client.url("/anything")).decoded(as: JSONValue.self)
        #expect(echo["method"]?.text == "POST" && echo["data"]?.text == "text")
    }

    @Test("a file can be given by its source")
    func source() async throws {
        let source = try UploadSource(path: try directory.write("from a file", to: "file"))
        let echo = try await manager.upload(source, with: client.url("/post")).decoded(as: JSONValue.self)
        #expect(echo["data"]?.text == "from a file")
    }

    @Test("a stream is sent in the order of its pieces", arguments: [1, 2, 50])
    func pieces(_ count: Int) async throws {
        let pieces = (0..<count).map { "piece \($0);" }
        let echo = try await echo(.pieces(pieces), client.request("/post", .post))
        #expect(echo["data"]?.text == pieces.joined())
    }

    @Test("header fields of an upload arrive")
    func fields() async throws {
        let name = try #require(HTTPField.Name("X-Own"))
        let request = client.request("/post", .post, [name: "yes", .contentType: "text/csv"])
        let echo = try await echo(.text("a,b"), request)
        #expect(echo.field("X-Own") == "yes" && echo.field("Content-Type") == "text/csv")
    }

    @Test("an upload without a media type is one of bytes")
    func defaultType() async throws {
        let echo = try await echo(.text("a=b"), client.request("/post", .post))
        #expect(echo.field("Content-Type") == "application/octet-stream" && echo["data"]?.text == "a=b")
    }

    @Test("JSON that is uploaded is understood")
    func json() async throws {
        let request = client.request("/post", .post, [.contentType: "application/json"])
        let echo = try await echo(.text(#"{"a": [1, true, null]}"#), request)
        #expect(echo["json"]?["a"] == .array([.number(1), .bool(true), .null]))
    }

    @Test(
        "bytes that are no text arrive unchanged",
        arguments: [[0], [0xFF, 0xFE, 0x00, 0x80], Array(0...255)] as [[UInt8]])
    func binary(_ bytes: [UInt8]) async throws {
        let text = try #require(try await echo(.data(bytes), client.request("/post", .post))["data"]?.text)
        let base64 = "data:application/octet-stream;base64,"
        let arrived =
            text.hasPrefix(base64) ? Data(base64Encoded: String(text.dropFirst(base64.count))) : Data(text.utf8)
        #expect(arrived.map { Array($0) } == bytes)
    }

    @Test("text beyond ASCII arrives as UTF-8", arguments: ["ä", "日本語", "🙂", "a\nb\tc"])
    func unicode(_ text: String) async throws {
        #expect(try await echo(.text(text), client.request("/post", .post))["data"]?.text == text)
    }

    // MARK: What is received

    @Test("an upload is validated like any other request", arguments: [201, 400, 404, 500])
    func validation(_ status: Int) async throws {
        let outcome = await manager.upload(.text("text"), with: client.url("/status/\(status)")).validate().outcome
        #expect(outcome.status == status && outcome.error?.httpStatus == (status == 201 ? nil : status))
    }

    @Test("an upload reports its request, response and metrics")
    func wholeResponse() async throws {
        let upload = manager.upload(.text("text"), with: client.url("/post"))
        let outcome = await upload.outcome
        #expect(outcome.request?.method == .post && outcome.status == 200 && outcome.data?.isEmpty == false)
        #expect(outcome.metrics.exchanges.count == 1 && upload.original?.method == .post)
    }

    // MARK: Redirects and attempts

    @Test("a redirect that keeps the method sends the body again", arguments: Kind.allCases, [307, 308])
    func resent(_ kind: Kind, _ status: Int) async throws {
        let path = "/redirect-to?url=/anything&status_code=\(status)"
        let echo = try await echo(body("again", kind), client.request(path, .put))
        #expect(echo["method"]?.text == "PUT" && echo["data"]?.text == "again")
    }

    @Test("a redirect that changes the method sends no body", arguments: [301, 302, 303])
    func droppedBody(_ status: Int) async throws {
        let path = "/redirect-to?url=/anything&status_code=\(status)"
        let echo = try await echo(.text("text"), client.request(path, .post, [.contentType: "text/plain"]))
        #expect(echo["method"]?.text == "GET" && echo["data"]?.text == "" && echo.field("Content-Type") == nil)
    }

    @Test("each attempt sends the whole body", arguments: Kind.allCases)
    func attempts(_ kind: Kind) async throws {
        let upload = manager.upload(try body("again", kind), with: client.request("/status/503", .put))
            .adapt(with: PathAdapter(client, "/status/503", "/anything")).retry(with: LimitedRetrier(1)).validate()
        #expect(try await upload.decoded(as: JSONValue.self)["data"]?.text == "again" && upload.retryCount == 1)
    }

    @Test("a stream is created for each attempt")
    func createdStreams() async throws {
        let created = Record<Int>()
        let stream = BodyStream(length: 1) {
            created.add(1)
            return AsyncStream<[UInt8]> { continuation in
                continuation.yield([0x61])
                continuation.finish()
            }
        }
        let upload = manager.upload(.stream(stream), with: client.request("/status/503", .put))
            .retry(with: LimitedRetrier(2)).validate()
        #expect(await upload.outcome.code == .httpStatus && created.count == 3)
    }

    // MARK: Failures

    @Test("a file that does not exist is no source", arguments: ["missing", "."])
    func missingFile(_ name: String) throws {
        #expect(throws: TransferError.self) { try UploadSource(path: directory.file(name)) }
    }

    @Test("an error of the stream fails the upload, with the error beneath")
    func failingStream() async throws {
        let stream = BodyStream {
            AsyncThrowingStream<[UInt8], any Error> { continuation in
                continuation.yield([0x61])
                continuation.finish(throwing: OwnError())
            }
        }
        let outcome = await manager.upload(.stream(stream), with: client.url("/post")).outcome
        #expect(outcome.code == .bodyStreamFailed && outcome.error?.underlying as? OwnError == OwnError())
    }

    @Test("a stream that is shorter than its length fails the upload")
    func shortStream() async throws {
        let outcome = await manager.upload(.pieces(["abc"], length: 4), with: client.url("/post")).outcome
        #expect(outcome.code == .bodyStreamFailed)
    }

    @Test("an upload can be cancelled while its stream waits")
    func cancelled() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        continuation.yield([0x61])
        let (sent, signal) = AsyncStream.makeStream(of: Void.self)
        manager.delegate.taskDidSendBodyData = { _, _, _, _ in signal.yield() }
        let upload = manager.upload(.stream(BodyStream { stream }), with: client.url("/post")).resume()
        for await _ in sent { break }
        #expect(await upload.cancel().outcome.code == .cancelled)
        continuation.finish()
    }

    // MARK: Progress

    @Test("the progress of the sent body ends with its length", arguments: [1, 1000, 400_000])
    func uploadProgress(_ size: Int) async throws {
        let upload = manager.upload(.data(alphabet(size)), with: client.url("/status/200"))
        _ = try await upload.value
        #expect(upload.uploadProgress.completedBytes == Int64(size) && upload.uploadProgress.totalBytes == Int64(size))
    }

    @Test("an upload counts the sent body and the response apart", arguments: [1, 100_000])
    func bothProgresses(_ size: Int) async throws {
        let upload = manager.upload(.data(alphabet(size)), with: client.url("/post"))
        let received = try await upload.validate().value.count
        #expect(upload.uploadProgress.completedBytes == Int64(size) && received > size)
        #expect(upload.progress.completedBytes == Int64(received) && upload.progress.totalBytes == Int64(received))
    }

    @Test("the delegate is told each piece of the body that is sent", arguments: Kind.allCases)
    func sentPieces(_ kind: Kind) async throws {
        let (pieces, totals, expected) = (Record<Int64>(), Record<Int64>(), Record<Int64?>())
        manager.delegate.taskDidSendBodyData = { _, bytes, total, length in
            pieces.add(bytes)
            totals.add(total)
            expected.add(length)
        }
        let text = String(decoding: alphabet(300_000), as: UTF8.self)
        _ = try await manager.upload(try body(text, kind), with: client.url("/status/200")).value
        #expect(pieces.all.reduce(0, +) == 300_000 && totals.all.last == 300_000 && totals.all == totals.all.sorted())
        #expect(Set(expected.all) == [kind == .stream ? nil : 300_000])
    }
}
