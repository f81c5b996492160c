import Glibc
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Uploads")
struct UploadTests {
    private let place: Place
    private let manager: SessionManager

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func source(_ resource: Resource) throws -> UploadSource {
        try resource.write(to: place.temporary.file("source"))
        return try UploadSource(path: place.temporary.file("source"))
    }

    @Test(
        "a file arrives byte for byte with its length, by PUT and by POST",
        arguments: [0, 1, 262_145, 3_000_000] as [Int64], [HTTPRequest.Method.put, .post])
    func exact(size: Int64, method: HTTPRequest.Method) async throws {
        let resource = Resource(size: size)
        let server = try ScriptedServer(["/in": [.status(201)]])
        let request = manager.upload(
            try source(resource), with: TransferRequest(url: server.url("/in"), method: method))
        #expect(await request.validate().outcome.head?.status == 201)
        let seen = try #require(server.requests().first)
        #expect(seen.method == method.rawValue)
        #expect(seen.header("content-length") == "\(size)")
        #expect(seen.header("transfer-encoding") == nil)
        #expect(seen.header("content-type") == (method == .post ? "application/octet-stream" : nil))
        #expect(seen.body == resource.bytes)
        #expect(request.uploadProgress.completedBytes == size)
        #expect(request.uploadProgress.transferredBytes == size)
        #expect(request.uploadProgress.totalBytes == size)
    }

    @Test("a content type of one's own stands")
    func contentType() async throws {
        let server = try ScriptedServer(["/in": [.status(200)]])
        var request = TransferRequest(url: server.url("/in"), method: .post)
        request.headerFields[.contentType] = "text/plain"
        _ = try await manager.upload(try source(Resource(size: 10)), with: request).value
        #expect(server.requests().first?.headers.filter { $0.name == "content-type" }.map(\.value) == ["text/plain"])
    }

    @Test("F55: a file that changes while it is sent never makes a complete request", arguments: 0..<3)
    func sourceChanges(harm: Int) async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let path = place.temporary.file("source")
        let source = try source(Resource(size: 5_000_000))
        let sent = Notes<Int64>()
        manager.delegate.taskDidSendBodyData = { _, bytes, _, _ in
            if sent.all.isEmpty {
                switch harm {
                case 0: truncate(path, 3_000_000)
                case 1: truncate(path, 6_000_000)
                default:
                    // The same size and another time, as after a rewrite.
                    var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
                    utimensat(AT_FDCWD, path, &times, 0)
                }
            }
            sent.add(bytes)
        }
        let outcome = await manager.upload(source, with: TransferRequest(url: server.url("/in"), method: .put))
            .validate().outcome
        #expect(outcome.error?.code == .sourceChanged)
        #expect(!sent.all.isEmpty)
        #expect(server.requests().isEmpty)
    }

    @Test("a file that changed before it is sent is not begun")
    func sourceChangedBefore() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let source = try source(Resource(size: 1000))
        truncate(place.temporary.file("source"), 0)
        let outcome = await manager.upload(source, with: TransferRequest(url: server.url("/in"), method: .put))
            .validate().outcome
        #expect(outcome.error?.code == .sourceChanged)
        #expect(server.connectionsAccepted == 0)
    }

    @Test("a redirect that keeps the method sends the whole body again", arguments: [307, 308])
    func redirect(status: Int) async throws {
        let resource = Resource(size: 500_000)
        let server = try ScriptedServer([
            "/in": [.status(status, headers: ["Location: /there"])], "/there": [.status(204)],
        ])
        let request = manager.upload(
            try source(resource), with: TransferRequest(url: server.url("/in"), method: .post))
        #expect(await request.validate().outcome.head?.status == 204)
        #expect(server.requests(for: "/there").first?.body == resource.bytes)
        #expect(server.requests(for: "/there").first?.method == "POST")
    }

    @Test("to a URL alone a body goes by POST, whatever makes it")
    func bareURL() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        _ = try await manager.upload(.data([1, 2]), with: server.url("/in")).value
        _ = try await manager.upload(try source(Resource(size: 10)), with: server.url("/in")).value
        _ = try await manager.upload(with: server.url("/in")) { $0.append([1], name: "a") }.value
        #expect(server.requests().map(\.method) == ["POST", "POST", "POST"])
    }

    @Test("a redirect to another origin takes no credential along")
    func redirectAway() async throws {
        let other = try ScriptedServer(["/in": [.status(201)]])
        let server = try ScriptedServer(["/in": [.status(307, headers: ["Location: \(other.url("/in"))"])]])
        let request = TransferRequest(
            url: server.url("/in"), method: .put, credential: Credential(user: "u", password: "p"))
        _ = try await manager.upload(try source(Resource(size: 10)), with: request).value
        #expect(server.requests().first?.header("authorization") == "Basic dTpw")
        #expect(other.requests().first?.header("authorization") == nil)
    }

    @Test("after a POST that points elsewhere, that is fetched by GET and without the body")
    func seeOther() async throws {
        let server = try ScriptedServer([
            "/in": [.status(303, headers: ["Location: /there"])], "/there": [.status(200, body: "seen")],
        ])
        var asked = TransferRequest(url: server.url("/in"), method: .post)
        asked.headerFields[.contentType] = "text/plain"
        let request = manager.upload(try source(Resource(size: 10)), with: asked)
        #expect(try await request.string == "seen")
        let second = try #require(server.requests(for: "/there").first)
        #expect(second.method == "GET" && second.body.isEmpty && second.header("content-type") == nil)
    }

    @Test("where only unchanged requests are to be followed, one that points elsewhere is the answer")
    func seeOtherNotFollowed() async throws {
        let server = try ScriptedServer(["/in": [.status(303, headers: ["Location: /there"])]])
        var asked = TransferRequest(url: server.url("/in"), method: .post)
        asked.redirects = .followUnchanged
        let request = manager.upload(try source(Resource(size: 10)), with: asked).validate(statusCode: [303])
        #expect(await request.outcome.head?.status == 303)
        #expect(server.requests(for: "/there").isEmpty)
    }

    @Test(
        "F79: a request whose `Expect` is refused is repeated without it, and the last status counts",
        arguments: [HTTPRequest.Method.put, .post], [nil, 10, 3_000_000] as [Int64?])
    func refusedExpectation(method: HTTPRequest.Method, size: Int64?) async throws {
        for headers in [["Connection: close"], []] {
            let server = try ScriptedServer(
                continuesRequests: false,
                [
                    "/in": [.status(417, headers: headers, body: "no"), .status(201)],
                    "/full": [.status(417, headers: headers), .status(507)],
                    "/odd": [.status(417, headers: headers)],
                ])
            for (path, status) in [("/in", 201), ("/full", 507), ("/odd", 417)] {
                // A session of its own has not met the server yet.
                let manager = try SessionManager(configuration: .test())
                var request = TransferRequest(url: server.url(path), method: method)
                // A small body is sent with the field only where the caller names it.
                if size ?? 0 < 1 << 20 { request.headerFields[.expect] = "100-continue" }
                let upload =
                    if let size {
                        manager.upload(try source(Resource(size: size)), with: request)
                    } else {
                        manager.upload(with: request) { $0.append(Array("text".utf8), name: "field") }
                    }
                #expect(await upload.outcome.head?.status == status)
                let requests = server.requests(for: path)
                #expect(requests.map { $0.header("expect") } == ["100-continue", nil])
                #expect(requests.map(\.method) == [method.rawValue, method.rawValue])
                #expect(upload.uploadProgress.completedBytes == Int64(requests.last?.body.count ?? 0))
                if let size { #expect(requests.last?.body == Resource(size: size).bytes) }
            }
        }
    }

    @Test("F79: a server that refuses `Expect` is sent none for the rest of the session")
    func expectationOmitted() async throws {
        let server = try ScriptedServer(
            continuesRequests: false, ["/in": [.status(417), .status(201)], "/next": [.status(201)]])
        let resource = Resource(size: 2_000_000)
        for path in ["/in", "/next"] {
            let request = TransferRequest(url: server.url(path), method: .put)
            #expect(await manager.upload(try source(resource), with: request).validate().outcome.head?.status == 201)
        }
        #expect(server.requests().map { $0.header("expect") } == ["100-continue", nil, nil])
        #expect(server.requests(for: "/next").first?.body == resource.bytes)
    }

    @Test("F79: a 417 that follows the whole body has the request repeated too")
    func lateRefusedExpectation() async throws {
        let server = try ScriptedServer(["/in": [.status(417), .status(201)]])
        let resource = Resource(size: 2_000_000)
        let request = TransferRequest(url: server.url("/in"), method: .post)
        #expect(await manager.upload(try source(resource), with: request).validate().outcome.head?.status == 201)
        #expect(server.requests().map(\.body) == [resource.bytes, resource.bytes])
        #expect(server.requests().map { $0.header("expect") } == ["100-continue", nil])
    }

    @Test("F79: a 417 to a request without `Expect` is its status")
    func unexpectedRefusal() async throws {
        let server = try ScriptedServer(["/in": [.status(417), .status(201)]])
        let request = TransferRequest(url: server.url("/in"), method: .put)
        let outcome = await manager.upload(try source(Resource(size: 1000)), with: request).validate().outcome
        #expect(outcome.error?.httpStatus == 417)
        #expect(server.requests().count == 1)
    }

    @Test("F79: so is one to a server that offers HTTP/2", arguments: [10, 3_000_000], [true, false])
    func refusedExpectationOverHTTP2(size: Int64, isNamed: Bool) async throws {
        let dav = "alias @UPLOADS@/; dav_methods PUT; client_max_body_size 0;"
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/in/", "if ($http_expect) { return 417; } \(dav)")],
            tls: .init(certificate: certificates.server), http2: true)
        let manager = try SessionManager(configuration: .test { $0.caFile = certificates.authority.path })
        let resource = Resource(size: size)
        var request = TransferRequest(url: nginx.url("/in/file", host: "localhost"), method: .put)
        request.httpVersion = .http2
        if isNamed { request.headerFields[.expect] = "100-continue" }
        let outcome = await manager.upload(try source(resource), with: request).outcome
        #expect(outcome.head?.status == 201, "\(String(describing: outcome.error))")
        #expect(resource.difference(fromFileAt: "\(nginx.uploads)/file") == nil)
    }

    @Test("a refusal is the status's failure", arguments: [401, 403, 404, 413, 500, 507])
    func refusal(status: Int) async throws {
        let server = try ScriptedServer(["/in": [.status(status)]])
        let outcome = await manager.upload(
            try source(Resource(size: 100_000)), with: TransferRequest(url: server.url("/in"), method: .put)
        ).validate().outcome
        #expect(outcome.error?.code == .httpStatus)
        #expect(outcome.error?.httpStatus == status)
        #expect(outcome.head?.status == status)
    }

    @Test("a retry sends the whole file again")
    func retry() async throws {
        let resource = Resource(size: 200_000)
        let server = try ScriptedServer(["/in": [.status(503), .status(201)]])
        manager.retrier = CountingRetrier(limit: 3)
        let request = manager.upload(
            try source(resource), with: TransferRequest(url: server.url("/in"), method: .put))
        #expect(await request.validate().outcome.head?.status == 201)
        #expect(server.requests().map { $0.body == resource.bytes } == [true, true])
        #expect(request.retryCount == 1)
    }

    @Test("a cancelled upload completes as cancelled")
    func cancel() async throws {
        let server = try ScriptedServer(["/in": [.hang]])
        let request = manager.upload(
            try source(Resource(size: 10)), with: TransferRequest(url: server.url("/in"), method: .put))
        request.resume()
        try await eventually(that: "the server has the request") { !server.requests().isEmpty }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("only a regular file can be sent, and a FIFO holds nothing up")
    func sources() throws {
        func code(_ name: String) -> TransferError.Code? {
            do {
                _ = try UploadSource(path: place.temporary.file(name))
                return nil
            } catch {
                return error.code
            }
        }
        mkfifo(place.temporary.file("fifo"), 0o600)
        try place.temporary.makeDirectory("directory")
        #expect(code("none") == .sourceChanged)
        #expect(code("fifo") == .invalidRequest)
        #expect(code("directory") == .invalidRequest)
        #expect(code("fifo/none") == .sourceChanged)
    }
}
