import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Uploads to servers that are slow, or that answer early")
struct SlowUploadTests {
    private let place: Place

    init() throws { place = try Place() }

    private func source(_ resource: Resource) throws -> UploadSource {
        try resource.write(to: place.temporary.file("source"))
        return try UploadSource(path: place.temporary.file("source"))
    }

    @Test("a body whose bytes the server takes slowly is no stall, however many the kernel has taken")
    func slowServer() async throws {
        let size = 2 << 20
        let server = try SlowReader(bytesPerSecond: 500_000, length: size)
        let manager = try SessionManager(configuration: .test { $0.stallTimeout = 1_000 })
        let request = manager.upload(
            try source(Resource(size: Int64(size))), with: TransferRequest(url: server.url(), method: .put))
        let outcome = await request.outcome
        #expect(outcome.head?.status == 201)
        #expect(server.received == [size])
        #expect(request.uploadProgress.transferredBytes == Int64(size))
        #expect(request.retryCount == 0)
    }

    @Test("a body that the server stops taking is a stall")
    func silentServer() async throws {
        // The server reads a piece every half minute.
        let server = try SlowReader(bytesPerSecond: 250, length: 4 << 20)
        let manager = try SessionManager(configuration: .test { $0.stallTimeout = 1_000 })
        let request = manager.upload(
            try source(Resource(size: 4 << 20)), with: TransferRequest(url: server.url(), method: .put))
        let begin = ContinuousClock.now
        #expect(await request.outcome.result.error?.code == .stalled)
        #expect(begin.duration(to: .now) < .seconds(15))
    }

    @Test(
        "a redirect that says that the server has acted does not count before it had the whole body",
        arguments: [303, 302])
    func earlyRedirect(status: Int) async throws {
        let server = try RawServer([
            Array("HTTP/1.1 \(status) Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n".utf8)
        ])
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: server.url(), method: .post)
        request.redirects = .followUnchanged
        let upload = manager.upload(try source(Resource(size: 8 << 20)), with: request)
        let error = await upload.outcome.result.error
        #expect(error?.code == .truncated)
        #expect(error?.message.contains("\(status)") == true)
    }

    @Test("an answer of HTTP/2 that ends before the body is sent ends the upload at once", arguments: [201, 204])
    func earlyAnswer(status: Int) async throws {
        let certificates = try await TestCertificates.shared
        let words = status == 204 ? "" : " ok"
        let nginx = try await Nginx(
            [.custom("/quick/", "client_max_body_size 0; return \(status)\(words);")],
            tls: .init(certificate: certificates.server), http2: true)
        let manager = try SessionManager(configuration: .test { $0.httpVersion = .http2 })
        var request = TransferRequest(url: nginx.url("/quick/f", host: "localhost"), method: .put)
        request.caCertificates = certificates.authority.text
        let begin = ContinuousClock.now
        let upload = manager.upload(try source(Resource(size: 8 << 20)), with: request)
        let error = await upload.outcome.result.error
        #expect(error?.code == .truncated)
        #expect(begin.duration(to: .now) < .seconds(5))
        #expect(manager.session.internalFaults == 0)
    }
}
