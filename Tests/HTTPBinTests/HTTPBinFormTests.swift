import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing
import Transfer

@Suite("httpbin: multipart forms", .timeLimit(.minutes(1)))
struct HTTPBinFormTests {
    let client: Client
    private let directory: TemporaryDirectory

    init() async throws {
        client = try await Client()
        directory = try TemporaryDirectory()
    }

    private var manager: SessionManager { client.manager }

    private func echo(
        threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        _ fill: @escaping @Sendable (inout MultipartFormData) -> Void
    ) async throws -> JSONValue {
        try await manager.upload(
            threshold: threshold, temporaryDirectory: directory.path, with: client.url("/post"), multipartFormData: fill
        ).validate().decoded()
    }

    /// A reader of the bytes of a text, a few at a time.
    private final class TextReader: MultipartReader {
        private let rest: Mutex<[UInt8]>

        init(_ text: String) {
            rest = Mutex(Array(text.utf8))
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws -> Int {
            rest.withLock { rest in
                let count = min(3, rest.count, space.count)
                space.copyBytes(from: rest[..<count])
                rest.removeFirst(count)
                return count
            }
        }
    }

    // MARK: Parts

    @Test("a text is a field of the form", arguments: ["b", "", "a\r\nb", "äöü 日本語 🙂", "--", "a=b&c=d", "\"quoted\""])
    func text(_ text: String) async throws {
        let echo = try await echo { $0.append(text, name: "a") }
        #expect(echo["form"]?["a"]?.text == text && echo["files"]?.members.isEmpty == true)
    }

    @Test("several fields arrive, two of one name too")
    func severalFields() async throws {
        let echo = try await echo {
            $0.append("1", name: "a")
            $0.append("2", name: "b")
            $0.append("3", name: "a")
        }
        #expect(echo["form"]?["a"]?.texts == ["1", "3"] && echo["form"]?["b"]?.text == "2")
    }

    @Test("the name of a field may be any text", arguments: ["a b", "ä", "a[b][]", "a;b=c", "日本語"])
    func name(_ name: String) async throws {
        #expect(try await echo { $0.append("1", name: name) }["form"]?[name]?.text == "1")
    }

    @Test("bytes with a file name are a file", arguments: ["text of a file", "", "line\r\nline"])
    func data(_ text: String) async throws {
        let echo = try await echo { $0.append(Array(text.utf8), name: "a", fileName: "a.txt") }
        #expect(echo["files"]?["a"]?.text == text && echo["form"]?.members.isEmpty == true)
    }

    @Test("bytes that are no text arrive unchanged, with their media type")
    func binary() async throws {
        let bytes: [UInt8] = [0xFF, 0x00, 0x0D, 0x0A, 0x2D, 0x2D, 0x80]
        let text = try await echo {
            $0.append(bytes, name: "a", fileName: "a.bin", mimeType: "application/x-own")
        }["files"]?["a"]?.text
        #expect(text == "data:application/x-own;base64,\(Data(bytes).base64EncodedString())")
    }

    @Test(
        "the media type is guessed from the file's name",
        arguments: [("a.png", "image/png"), ("a.pdf", "application/pdf"), ("a.unknown", "application/octet-stream")])
    func guessedType(_ name: String, _ type: String) async throws {
        let text = try await echo { $0.append([0xFF, 0xD8], name: "a", fileName: name) }["files"]?["a"]?.text
        #expect(text?.hasPrefix("data:\(type);base64,") == true)
    }

    @Test("a file arrives", arguments: [0, 1, 100_000])
    func file(_ size: Int) async throws {
        let text = String(decoding: alphabet(size), as: UTF8.self)
        let path = try directory.write(text, to: "source.txt")
        #expect(try await echo { $0.append(fileAt: path, name: "a") }["files"]?["a"]?.text == text)
    }

    @Test("a file that is open already arrives")
    func openFile() async throws {
        let source = try UploadSource(path: try directory.write("text", to: "source"))
        let echo = try await echo { $0.append(source, name: "a", fileName: "name.txt") }
        #expect(echo["files"]?["a"]?.text == "text")
    }

    @Test("a stream arrives", arguments: ["a", "abcdefghijklmnop"])
    func stream(_ text: String) async throws {
        let echo = try await echo {
            $0.append(length: Int64(text.utf8.count), name: "a", fileName: "a.txt") { TextReader(text) }
        }
        #expect(echo["files"]?["a"]?.text == text)
    }

    @Test("texts, bytes, files and streams arrive together")
    func together() async throws {
        let path = try directory.write("from a file", to: "source")
        let echo = try await echo {
            $0.append("from a text", name: "text")
            $0.append(Array("from bytes".utf8), name: "data", fileName: "data")
            $0.append(fileAt: path, name: "file")
            $0.append(length: 13, name: "stream", fileName: "stream") { TextReader("from a stream") }
        }
        #expect(echo["form"]?["text"]?.text == "from a text" && echo["files"]?["data"]?.text == "from bytes")
        #expect(echo["files"]?["file"]?.text == "from a file" && echo["files"]?["stream"]?.text == "from a stream")
    }

    @Test("a form without parts is accepted")
    func noParts() async throws {
        let echo = try await echo { _ in }
        #expect(echo["form"]?.members.isEmpty == true && echo["files"]?.members.isEmpty == true)
    }

    // MARK: The request

    @Test("the media type has the boundary of the form")
    func contentType() async throws {
        var form = MultipartFormData(boundary: try MultipartBoundary("the-boundary"))
        form.append("b", name: "a")
        let upload = manager.upload(multipartFormData: form, with: client.url("/post"))
        let echo = try await upload.decoded(as: JSONValue.self)
        #expect(echo.field("Content-Type") == "multipart/form-data; boundary=the-boundary")
        #expect(echo.field("Content-Type") == form.contentType && echo["form"]?["a"]?.text == "b")
    }

    @Test("a boundary of any permitted characters works", arguments: ["a", "a:b", "with space inside", "'()+_,-./:=?"])
    func boundary(_ text: String) async throws {
        var form = MultipartFormData(boundary: try MultipartBoundary(text))
        form.append("b", name: "a")
        let echo = try await manager.upload(multipartFormData: form, with: client.url("/post"))
            .decoded(as: JSONValue.self)
        #expect(echo["form"]?["a"]?.text == "b")
    }

    @Test("the announced length is that of the body")
    func contentLength() async throws {
        var form = MultipartFormData()
        form.append("text", name: "a")
        form.append(alphabet(1000), name: "b", fileName: "b.txt")
        let echo = try await manager.upload(multipartFormData: form, with: client.url("/post"))
            .decoded(as: JSONValue.self)
        #expect(echo.field("Content-Length") == String(form.contentLength))
        #expect(try form.encode().count == Int(form.contentLength))
    }

    @Test(
        "a form is sent with the method and the fields of the request",
        arguments: [.post, .put, .patch] as [HTTPRequest.Method])
    func method(_ method: HTTPRequest.Method) async throws {
        let name = try #require(HTTPField.Name("X-Own"))
        let upload = manager.upload(with: client.request("/anything", method, [name: "yes"])) {
            $0.append("b", name: "a")
        }
        let echo = try await upload.decoded(as: JSONValue.self)
        #expect(
            echo["method"]?.text == method.rawValue && echo.field("X-Own") == "yes" && echo["form"]?["a"]?.text == "b")
    }

    @Test("a form is sent again for another attempt")
    func attempts() async throws {
        let upload = manager.upload(with: client.request("/status/503", .put)) { $0.append("b", name: "a") }
            .adapt(with: PathAdapter(client, "/status/503", "/anything")).retry(with: LimitedRetrier(1)).validate()
        #expect(try await upload.decoded(as: JSONValue.self)["form"]?["a"]?.text == "b" && upload.retryCount == 1)
    }

    @Test("a form follows a redirect that keeps the method", arguments: [307, 308])
    func redirected(_ status: Int) async throws {
        let url = client.url("/redirect-to?url=/post&status_code=\(status)")
        let echo = try await manager.upload(with: url) { $0.append("b", name: "a") }.decoded(as: JSONValue.self)
        #expect(echo["form"]?["a"]?.text == "b")
    }

    // MARK: Memory and files

    @Test(
        "a form is encoded in memory up to the threshold, and beyond it in a file that is removed",
        arguments: [true, false])
    func threshold(isSmall: Bool) async throws {
        let form = Mutex(MultipartFormData())
        form.withLock { $0.append("text", name: "a") }
        let made = form.withLock { $0 }
        let upload = manager.upload(
            multipartFormData: made, threshold: made.contentLength - (isSmall ? 0 : 1),
            temporaryDirectory: directory.path, with: client.url("/post"))
        #expect(try await upload.decoded(as: JSONValue.self)["form"]?["a"]?.text == "text")
        switch try #require(upload.multipartEncoding) {
        case .inMemory(let body, let type):
            #expect(isSmall && body.count == Int(made.contentLength) && type == made.contentType)
        case .onDisk(let path, let type, let size):
            #expect(!isSmall && size == made.contentLength && type == made.contentType && !exists(path))
        }
        #expect(TemporaryDirectory.names(in: directory.path).isEmpty)
    }

    @Test("the file of a form is removed when its request is cancelled")
    func cancelled() async throws {
        let upload = manager.upload(
            threshold: 0, temporaryDirectory: directory.path, with: client.url("/delay/10")
        ) { $0.append("b", name: "a") }
        let (sent, signal) = AsyncStream.makeStream(of: Void.self)
        manager.delegate.taskDidSendBodyData = { _, _, _, _ in signal.yield() }
        upload.resume()
        for await _ in sent { break }
        #expect(await upload.cancel().outcome.code == .cancelled)
        #expect(TemporaryDirectory.names(in: directory.path).isEmpty)
    }

    @Test("the bytes of a form are reported while they are sent", arguments: [true, false])
    func progress(isInMemory: Bool) async throws {
        let upload = manager.upload(
            threshold: isInMemory ? 1_000_000 : 0, temporaryDirectory: directory.path, with: client.url("/post")
        ) { $0.append(alphabet(300_000), name: "a", fileName: "a.txt") }
        _ = try await upload.validate().value
        #expect((upload.uploadProgress.completedBytes) > 300_000)
        #expect(upload.uploadProgress.completedBytes == upload.uploadProgress.totalBytes)
    }

    @Test("a form with one file is read while it is sent")
    func framed() async throws {
        let path = try directory.write("from a file", to: "source.txt")
        var form = MultipartFormData()
        form.append("before", name: "a")
        form.append(fileAt: path, name: "b")
        form.append("after", name: "c")
        let request = client.request("/post", .post, [.contentType: form.contentType])
        let echo = try await manager.upload(try form.framed(), with: request).decoded(as: JSONValue.self)
        #expect(echo["form"]?["a"]?.text == "before" && echo["form"]?["c"]?.text == "after")
        #expect(echo["files"]?["b"]?.text == "from a file")
    }

    @Test("a form can be written to a file, and sent from there")
    func written() async throws {
        var form = MultipartFormData()
        form.append("b", name: "a")
        let path = directory.file("form")
        try form.write(toFileAt: path)
        let request = client.request("/post", .post, [.contentType: form.contentType])
        let echo = try await manager.upload(UploadSource(path: path), with: request).decoded(as: JSONValue.self)
        #expect(echo["form"]?["a"]?.text == "b")
        #expect(throws: TransferError.self) { try form.write(toFileAt: path) }
    }

    // MARK: Failures

    @Test("what cannot be appended fails the request", arguments: ["missing", "directory", "name", "type", "length"])
    func failure(_ reason: String) async throws {
        let path = directory.path
        let upload = manager.upload(with: client.url("/post")) { form in
            switch reason {
            case "missing": form.append(fileAt: path + "/missing", name: "a")
            case "directory": form.append(fileAt: path, name: "a")
            case "name": form.append("b", name: "a\0")
            case "type": form.append([1], name: "a", fileName: "a", mimeType: "a\nb")
            default: form.append(length: -1, name: "a") { TextReader("") }
            }
        }
        let outcome = await upload.outcome
        #expect(
            outcome.code == (reason == "missing" ? .sourceChanged : .invalidRequest)
                && outcome.metrics.exchanges.isEmpty)
        #expect(upload.multipartEncoding == nil)
    }

    @Test("the first error of a form is kept")
    func firstFailure() {
        var form = MultipartFormData()
        form.append(fileAt: directory.file("missing"), name: "a")
        form.append("b", name: "a\0")
        #expect(form.failure?.code == .sourceChanged)
        #expect(throws: TransferError.self) { try form.encode() }
    }

    @Test("a stream of another length than announced fails the request", arguments: [3, 5])
    func wrongLength(_ length: Int64) async throws {
        let upload = manager.upload(with: client.url("/post")) {
            $0.append(length: length, name: "a") { TextReader("abcd") }
        }
        #expect(await upload.outcome.code == .sourceChanged)
    }

    @Test("a file that changes before the form is encoded fails the request")
    func changedFile() async throws {
        let path = try directory.write("before", to: "source")
        let form = Mutex(MultipartFormData())
        form.withLock { $0.append(fileAt: path, name: "a") }
        try directory.write("changed", to: "source2")
        try Data("a longer text".utf8).write(to: URL(filePath: path), options: [])
        let upload = manager.upload(multipartFormData: form.withLock { $0 }, with: client.url("/post"))
        #expect(await upload.outcome.code == .sourceChanged)
    }
}
