import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: downloads and their destinations", .timeLimit(.minutes(1)))
struct HTTPBinDownloadTests {
    let client: Client
    private let directory: TemporaryDirectory

    init() async throws {
        client = try await Client()
        directory = try TemporaryDirectory()
    }

    private var manager: SessionManager { client.manager }
    private var names: [String] { TemporaryDirectory.names(beneath: directory.path).sorted() }

    /// Downloads `request` to `file` and returns the file's JSON.
    private func json(_ request: some RequestConvertible) async throws -> JSONValue {
        let file = try await manager.download(request, to: directory.file("file")).value
        return try JSONDecoder().decode(JSONValue.self, from: Data(contentsOf: URL(filePath: file.path)))
    }

    // MARK: Contents

    @Test("a file of any size is complete", arguments: [1, 26, 1023, 1024, 16_384, 65_537, 102_400])
    func sizes(_ size: Int) async throws {
        let file = try await manager.download(client.url("/range/\(size)"), to: directory.file("file")).value
        #expect(file.path == directory.file("file") && file.size == Int64(size))
        #expect(try contents(ofFileAt: file.path) == alphabet(size) && names == ["file"])
    }

    @Test("a body without Content-Length becomes a file", arguments: ["/stream-bytes/50000", "/stream/10"])
    func chunked(_ path: String) async throws {
        let file = try await manager.download(client.url(path), to: directory.file("file")).value
        #expect(try contents(ofFileAt: file.path).count == Int(file.size) && file.size > 0)
    }

    @Test(
        "an image that is downloaded has the bytes that a data request receives",
        arguments: ["png", "jpeg", "webp", "svg"])
    func image(_ kind: String) async throws {
        let url = client.url("/image/\(kind)")
        let file = try await manager.download(url, to: directory.file("file")).value
        #expect(try await Data(contentsOf: URL(filePath: file.path)) == manager.request(url).value)
    }

    @Test("header fields and the query of a download arrive")
    func fields() async throws {
        let name = try #require(HTTPField.Name("X-Own"))
        let echo = try await json(client.request("/get?a=b", .get, [name: "yes"]))
        #expect(echo.field("X-Own") == "yes" && echo["args"]?["a"]?.text == "b")
    }

    @Test("parameters of a download are encoded into its URL")
    func parameters() async throws {
        let encoded = try URLEncoding().encode(client.request("/get"), with: ["a": "b c", "d": [1, 2]])
        let echo = try await json(encoded.request)
        #expect(echo["args"]?["a"]?.text == "b c" && echo["args"]?["d[]"]?.texts == ["1", "2"])
    }

    @Test("a download uses the method of its request", arguments: [.get, .post, .put] as [HTTPRequest.Method])
    func method(_ method: HTTPRequest.Method) async throws {
        #expect(try await json(client.request("/anything", method))["method"]?.text == method.rawValue)
    }

    @Test("a download requests unencoded bytes")
    func coding() async throws {
        #expect(try await json(client.request("/headers")).field("Accept-Encoding") == "identity")
    }

    @Test("a body that is compressed all the same is decoded into the file", arguments: ["gzip", "deflate"])
    func compressed(_ path: String) async throws {
        #expect(try await json(client.request("/\(path)"))[path == "gzip" ? "gzipped" : "deflated"] == .bool(true))
    }

    @Test("redirects lead to the file", arguments: ["/redirect/3", "/absolute-redirect/2", "/relative-redirect/2"])
    func redirected(_ path: String) async throws {
        #expect(try await json(client.request(path))["url"]?.text == client.url("/get"))
    }

    @Test("the response of a download reports request, head, file and metrics")
    func wholeResponse() async throws {
        let request = manager.download(client.url("/range/100"), to: directory.file("file"))
        let outcome = await request.outcome
        #expect(outcome.request?.url == client.url("/range/100") && outcome.status == 200)
        #expect(outcome.file?.path == directory.file("file") && outcome.value == outcome.file)
        #expect(outcome.resumeData == nil && outcome.error == nil && outcome.timeline != nil)
        #expect(request.resumeData == nil && request.response?.status == 200)
    }

    @Test("an empty response becomes an empty file")
    func empty() async throws {
        let file = try await manager.download(client.url("/status/200"), to: directory.file("file")).value
        #expect(file.size == 0 && names == ["file"])
    }

    @Test("a status that announces no content fails the download", arguments: [204, 205])
    func noContent(_ status: Int) async throws {
        let outcome = await manager.download(client.url("/status/\(status)"), to: directory.file("file")).outcome
        #expect(outcome.error?.httpStatus == status && names.isEmpty)
    }

    @Test("a body in a coding that was not requested and cannot be decoded is kept as it is")
    func unknownCoding() async throws {
        let download = manager.download(client.url("/brotli"), to: directory.file("file"))
        #expect(try await download.value.size > 0 && names == ["file"])
    }

    // MARK: Destinations

    @Test("a missing directory fails the download, and nothing is created")
    func missingDirectory() async throws {
        let outcome = await manager.download(client.url("/range/10"), to: directory.file("a/b/file")).outcome
        #expect(outcome.code == .directoryMissing && names.isEmpty)
    }

    @Test("missing directories are created if that is permitted", arguments: ["a/file", "a/b/c/file"])
    func createdDirectories(_ name: String) async throws {
        let file = try await manager.download(
            client.url("/range/10"), to: directory.file(name), options: .createIntermediateDirectories
        ).value
        #expect(try contents(ofFileAt: file.path) == alphabet(10))
    }

    @Test("a name that is taken fails the download, and the file there stays")
    func takenName() async throws {
        let path = try directory.write("old", to: "file")
        let outcome = await manager.download(client.url("/range/10"), to: path).outcome
        #expect(outcome.code == .nameConflict && outcome.file == nil)
        #expect(try contents(ofFileAt: path) == Array("old".utf8) && names == ["file"])
    }

    @Test("a file is replaced if that is permitted")
    func replaced() async throws {
        let path = try directory.write("old", to: "file")
        _ = try await manager.download(client.url("/range/10"), to: path, options: .removePreviousFile).value
        #expect(try contents(ofFileAt: path) == alphabet(10) && names == ["file"])
    }

    @Test("a directory is never replaced")
    func directoryInPlace() async throws {
        try directory.makeDirectory("file")
        let outcome = await manager.download(
            client.url("/range/10"), to: directory.file("file"), options: .removePreviousFile
        ).outcome
        #expect(outcome.code == .nameConflict)
    }

    @Test("the destination may be a file URL")
    func fileURL() async throws {
        let file = try await manager.download(
            client.url("/range/10"), to: URL(filePath: directory.file("with space"))
        ).value
        #expect(file.path == directory.file("with space") && names == ["with space"])
    }

    @Test("a destination of another scheme than file is refused")
    func otherURL() async throws {
        let url = try #require(URL(string: "http://example.org/file"))
        #expect(await manager.download(client.url("/range/10"), to: url).outcome.code == .pathNotAllowed)
    }

    @Test(
        "a file takes the name that the server suggests, and never leaves the directory",
        arguments: [
            ("/response-headers?Content-Disposition=attachment%3B%20filename%3D%22report.json%22", "report.json"),
            (
                "/response-headers?Content-Disposition=attachment%3B%20filename*%3DUTF-8%27%27na%25C3%25AFve.json",
                "naïve.json"
            ),
            ("/response-headers?Content-Disposition=attachment%3B%20filename%3D%22..%2F..%2Fpasswd%22", "passwd"),
            ("/response-headers?Content-Disposition=inline", "response-headers"),
            ("/image/png", "png"), ("/anything/a%20b.txt", "a b.txt"), ("/anything/a/b.tar.gz?c=d", "b.tar.gz"),
        ])
    func suggestedName(_ path: String, _ name: String) async throws {
        let file = try await manager.download(client.url(path), to: .suggested(in: directory.path)).value
        #expect(file.path == directory.file(name) && names == [name])
    }

    @Test("a closure decides the destination by the head")
    func closure() async throws {
        let calls = Record<String>()
        let destination = DownloadDestination { [directory] temporary, head in
            calls.add("\(head.status) \(temporary.suggestedName) \(temporary.size ?? -1)")
            return (directory.file("chosen"), [])
        }
        let file = try await manager.download(client.url("/range/30"), to: destination).value
        #expect(file.path == directory.file("chosen") && calls.all == ["200 30 30"])
    }

    @Test("an error of the closure fails the download before its body")
    func refusingClosure() async throws {
        let outcome = await manager.download(
            client.url("/range/30"), to: DownloadDestination { _, _ in throw OwnError() }
        ).outcome
        #expect(outcome.code == .destinationRefused && outcome.error?.underlying as? OwnError == OwnError())
    }

    @Test("without a destination, the file is a temporary one that only its owner may read")
    func temporary() async throws {
        let file = try await manager.download(client.url("/range/30")).value
        defer { unlink(file.path) }
        var status = stat()
        #expect(stat(file.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try contents(ofFileAt: file.path) == alphabet(30))
    }

    // MARK: Verification

    @Test("a file is compared with its digest", arguments: [true, false])
    func digest(isRight: Bool) async throws {
        let hex = "71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73"
        let digest = FileDigest(algorithm: .sha256, hex: isRight ? hex : String(hex.reversed()))
        let target = DownloadTarget(
            directory: try Directory.open(root: directory.path), partName: ".part", owner: "test"
        ) { _ in FileDestination(name: "file", conflict: .fail, digest: digest) }
        let outcome = await manager.download(client.url("/range/26"), to: target).outcome
        #expect(outcome.code == (isRight ? nil : .checksumMismatch))
        #expect(outcome.file?.isVerified == (isRight ? true : nil) && exists(directory.file("file")) == isRight)
    }

    // MARK: Failures

    @Test(
        "a status that is no success fails the download without validation, and nothing is created",
        arguments: [400, 401, 403, 404, 410, 418, 429, 500, 502, 503, 504])
    func errorStatus(_ status: Int) async throws {
        let outcome = await manager.download(client.url("/status/\(status)"), to: directory.file("file")).outcome
        #expect(outcome.code == .httpStatus && outcome.error?.httpStatus == status && outcome.status == status)
        #expect(names.isEmpty)
    }

    @Test("a media type that is not accepted fails the download before its body", arguments: ["/html", "/image/png"])
    func mediaType(_ path: String) async throws {
        let outcome = await manager.download(client.url(path), to: directory.file("file"))
            .validate(contentType: ["application/json"]).outcome
        #expect(outcome.code == .unacceptableContentType && names.isEmpty)
    }

    @Test("a closure that validates a download sees request and head, and may refuse", arguments: [true, false])
    func validator(accepts: Bool) async throws {
        let outcome = await manager.download(client.url("/range/30"), to: directory.file("file"))
            .validate { request, head in
                #expect(request.url.hasSuffix("/range/30") && head.contentLength == 30)
                return accepts ? .success(()) : .failure(OwnError())
            }.outcome
        #expect(outcome.code == (accepts ? nil : .validationFailed))
        #expect(outcome.error?.underlying as? OwnError == (accepts ? nil : OwnError()))
        #expect(names == (accepts ? ["file"] : []))
    }

    @Test("an awaited download throws the error of its response")
    func thrown() async throws {
        await #expect(throws: TransferError.self) {
            try await manager.download(client.url("/status/404"), to: directory.file("file")).value
        }
    }

    @Test("a body beyond the limit of the request fails, and nothing stays")
    func limit() async throws {
        var request = client.request("/range/2000")
        request.maximumBodySize = 1999
        let outcome = await manager.download(request, to: directory.file("file")).outcome
        #expect(outcome.code == .tooLarge && !exists(directory.file("file")))
    }

    // MARK: Progress

    @Test("the progress of a download ends with its size", arguments: [26, 102_400])
    func progress(_ size: Int) async throws {
        let request = manager.download(client.url("/range/\(size)"), to: directory.file("file"))
        var seen: [TransferProgress.Snapshot] = []
        for await snapshot in request.progress { seen.append(snapshot) }
        #expect(seen.map(\.completedBytes) == seen.map(\.completedBytes).sorted())
        #expect(seen.last?.completedBytes == Int64(size) && seen.last?.fractionCompleted == 1)
        #expect(request.progress.totalBytes == Int64(size) && request.progress.transferredBytes == Int64(size))
        #expect(await request.outcome.error == nil)
    }

    @Test("the closures for progress and for the last byte are called")
    func closures() async throws {
        let record = Record<String>()
        let request = manager.download(client.url("/range/1000"), to: directory.file("file"))
            .onReceived { record.add("received") }
        await withCheckedContinuation { continuation in
            request.onProgress { if $0.completedBytes == 1000 { record.add("all") } }
            request.response { _ in continuation.resume() }
        }
        #expect(record.all.contains("received"))
    }
}
