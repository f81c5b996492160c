import Glibc
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Forms that are read as they are sent")
struct FramedFormTests {
    private let place: Place
    private let manager: SessionManager

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func source(_ size: Int64) throws -> UploadSource {
        try Resource(size: size).write(to: place.temporary.file("a \"b\".txt"))
        return try UploadSource(path: place.temporary.file("a \"b\".txt"))
    }

    private func form(_ source: UploadSource) -> MultipartFormData {
        var form = MultipartFormData()
        form.append("first\r\nvalue", name: "one")
        form.append(source, name: "file", fileName: "a \"b\".txt")
        form.append("last", name: "two")
        return form
    }

    private func request(_ form: MultipartFormData, to url: String) throws -> TransferRequest {
        var request = TransferRequest(url: url, method: .post)
        request.headerFields[.contentType] = form.contentType
        return request
    }

    private func framed(_ form: MultipartFormData) throws -> FramedFile {
        guard case .framed(let framed) = try form.framed() else { throw Unusable(reason: "it is no framed file") }
        return framed
    }

    @Test(
        "what arrives is what the form encodes to, with its length", arguments: [0, 1, 262_144, 3_000_000] as [Int64])
    func exact(size: Int64) async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let form = form(try source(size))
        let upload = manager.upload(try form.framed(), with: try request(form, to: server.url("/in")))
        #expect(await upload.validate().outcome.head?.status == 201)
        let seen = try #require(server.requests().first)
        #expect(seen.body == (try form.encode()))
        #expect(seen.header("content-length") == "\(form.contentLength)" && seen.header("transfer-encoding") == nil)
        #expect(seen.header("content-type") == form.contentType)
        #expect(upload.uploadProgress.completedBytes == form.contentLength)
        #expect(upload.uploadProgress.totalBytes == form.contentLength)
        // The upload created no temporary file.
        #expect(TemporaryDirectory.names(beneath: place.temporary.path).filter { !$0.contains("txt") } == [])
    }

    @Test("pieces of any length give the same bytes")
    func pieces() throws {
        let source = try source(1000)
        let form = form(source)
        let framed = try framed(form)
        let whole = try form.encode()
        #expect(framed.length == Int64(whole.count))
        for length in [1, 7, 999, 5000] {
            var bytes: [UInt8] = []
            try withUnsafeTemporaryAllocation(byteCount: length, alignment: 1) { space in
                while case let count = try framed.read(into: space, at: Int64(bytes.count)), count > 0 {
                    bytes += space[..<count]
                }
            }
            #expect(bytes == whole)
        }
    }

    @Test("a file that changes while it is sent never makes a complete form", arguments: 0..<3)
    func changes(harm: Int) async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let form = form(try source(5_000_000))
        let path = place.temporary.file("a \"b\".txt")
        let sent = Notes<Int64>()
        manager.delegate.taskDidSendBodyData = { _, bytes, _, _ in
            if sent.all.isEmpty {
                switch harm {
                case 0: truncate(path, 3_000_000)
                case 1: truncate(path, 6_000_000)
                default: setTime(1, of: path)
                }
            }
            sent.add(bytes)
        }
        let outcome = await manager.upload(try form.framed(), with: try request(form, to: server.url("/in"))).outcome
        #expect(outcome.error?.code == .sourceChanged)
        #expect(!sent.all.isEmpty && server.requests().isEmpty)
    }

    @Test("an empty file that grows is noticed as well")
    func grows() throws {
        let form = form(try source(0))
        let framed = try framed(form)
        truncate(place.temporary.file("a \"b\".txt"), 1)
        withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) { space in
            let error = #expect(throws: TransferError.self) {
                try framed.read(into: space, at: Int64(framed.before.count))
            }
            #expect(error?.code == .sourceChanged)
        }
    }

    @Test("a form without a file, with two, or with a stream is encoded in other ways")
    func otherForms() throws {
        var none = MultipartFormData()
        none.append("a", name: "b")
        var two = form(try source(1))
        two.append(try source(1), name: "again", fileName: "b")
        for form in [none, two] {
            let error = #expect(throws: TransferError.self) { try form.framed() }
            #expect(error?.code == .invalidRequest)
        }
        var broken = form(try source(1))
        broken.append("x", name: "a\u{0}")
        #expect(throws: TransferError.self) { try broken.framed() }
    }

    @Test("cookies of a request's own go to the servers they name, over redirects too, and what is set is sent back")
    func cookies() async throws {
        let target = try ScriptedServer(["/there": [.status(200)]])
        let server = try ScriptedServer([
            "/in": [
                .status(
                    302, headers: ["Location: /next", "Set-Cookie: given=2; Path=/"])
            ],
            "/next": [.redirect("http://localhost:\(target.port)/there")],
        ])
        var request = TransferRequest(url: server.url("/in"))
        let cookies = CookieStorage()
        for line in [
            "127.0.0.1\tFALSE\t/\tFALSE\t0\tmine\t1", "127.0.0.1\tFALSE\t/elsewhere\tFALSE\t0\tother\t1",
            "127.0.0.1\tFALSE\t/\tFALSE\t1\told\t1", "localhost\tFALSE\t/\tFALSE\t0\tlocal\t1",
        ] { cookies.set(try #require(Cookie(netscape: line))) }
        request.cookies = cookies
        #expect(await manager.request(request).outcome.head?.status == 200)
        #expect(server.requests(for: "/in").first?.header("cookie") == "mine=1")
        #expect(server.requests(for: "/next").first?.header("cookie")?.contains("given=2") == true)
        #expect(target.requests(for: "/there").first?.header("cookie") == "local=1")
        // The session's own cookie storage is separate.
        #expect(manager.session.configuration.cookieStorage?.cookies.isEmpty == true)
    }
}
