import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Faults of the network")
struct NetworkFaultTests {
    private let place: Place
    private let resource = Resource(size: 300_000)

    init() throws { place = try Place() }

    private func digest(of resource: Resource) -> FileDigest {
        var digest = RunningDigest(.sha256)
        resource.bytes.withUnsafeBytes { digest.update($0) }
        return FileDigest(algorithm: .sha256, bytes: digest.value)
    }

    // MARK: F29

    /// Returns a response of a server that sends no lengths: the end of the connection is the end of the body.
    private func unframed(_ count: Int64) -> [UInt8] {
        Array("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n".utf8) + resource.bytes(0..<count)
    }

    @Test("F29: a body that the connection's end alone ends is never called verified, and a digest finds out a cut one")
    func unframedBody() async throws {
        let manager = try SessionManager(configuration: .test())
        let cut = try RawServer([unframed(200_000)])
        let file = try await manager.download(cut.url(), to: place.target("a")).value
        #expect(!file.isVerified)
        let digest = digest(of: resource)
        let refused = await manager.download(cut.url(), to: place.target("b", digest: digest)).outcome
        #expect(refused.result.error?.code == .checksumMismatch)
        #expect(!place.names.contains("b"))
        manager.retrier = CountingRetrier(limit: 2)
        let healing = try RawServer([unframed(200_000), unframed(resource.size)])
        let whole = try await manager.download(healing.url(), to: place.target("c", digest: digest)).value
        #expect(whole.isVerified && resource.difference(fromFileAt: whole.path) == nil)
    }

    @Test("F29: over TLS such a body counts where close_notify ends it, or a digest fits; a FIN alone cuts it")
    func incompleteClose() async throws {
        let certificates = try await TestCertificates.shared
        let source = place.temporary.file("source")
        try resource.write(to: source)
        let server = try await RaggedServer(source, identity: certificates.server)
        let manager = try SessionManager(configuration: .test { $0.caFile = certificates.authority.path })
        let whole = try await manager.download(server.url("/whole"), to: place.target("a")).value
        #expect(!whole.isVerified && resource.difference(fromFileAt: whole.path) == nil)
        for path in ["/cut", "/silent", "/coded"] {
            let outcome = await manager.download(server.url(path), to: place.target("b")).outcome
            #expect(outcome.result.error?.code == .truncated, "\(path)")
            #expect(await manager.request(server.url(path)).outcome.result.error?.code == .truncated, "\(path)")
        }
        #expect(!place.names.contains("b"))
        let digest = digest(of: resource)
        let fitting = try await manager.download(server.url("/silent"), to: place.target("c", digest: digest)).value
        #expect(fitting.isVerified)
        let refused = await manager.download(server.url("/cut"), to: place.target("d", digest: digest)).outcome
        #expect(refused.result.error?.code == .checksumMismatch)
        // An upload's result depends on the response's status only.
        let upload = manager.upload(.data(Array("x".utf8)), with: server.url("/silent"))
        #expect(await upload.outcome.result.error == nil)
        manager.retrier = CountingRetrier(limit: 2)
        // The whole has no validator: a third response has to confirm the second.
        var request = TransferRequest(url: server.url("/healing"))
        request.confirmationDelay = 0
        let healed = try await manager.download(request, to: place.target("e")).value
        #expect(resource.difference(fromFileAt: healed.path) == nil)
    }

    // MARK: F32

    @Test("F32: where SYNs vanish the connect timeout ends the attempt, and a later one finds the server")
    func blackHole() async throws {
        let hole = try BlackHole()
        let manager = try SessionManager(configuration: .test { $0.connectTimeout = 400 })
        let begin = ContinuousClock.now
        let outcome = await manager.download(hole.url(), to: place.target()).outcome
        #expect(outcome.result.error?.code == .timedOut)
        #expect(begin.duration(to: .now) < .seconds(5))

        let retrier = CountingRetrier(limit: 20, delay: 200)
        manager.retrier = retrier
        let request = manager.download(hole.url(), to: place.target()).resume()
        try await eventually(that: "it was tried in vain") { !retrier.asked.withLock { $0.isEmpty } }
        try hole.relent(Self.answer(of: resource))
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
    }

    private static func answer(of resource: Resource) -> [UInt8] {
        let head = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: \(resource.size)\r\n\r\n"
        return Array(head.utf8) + resource.bytes
    }

    // MARK: F33

    @Test(
        "F33: over a line of 300 ms that loses one packet in twenty a file arrives whole, over every connection",
        .enabled("packets can be dropped by root alone") { await PacketLoss.isPossible() },
        arguments: [Segments.one, .automatic])
    func loss(segments: Segments) async throws {
        let resource = Resource(size: 32 << 20)
        let server = try ScriptedServer(line: NetworkLine(roundTrip: 300, rate: 8_000_000), ["/f": [.serve(resource)]])
        let loss = try await PacketLoss(atPort: server.port, oneIn: 20)
        let manager = try SessionManager(configuration: .test())
        manager.retrier = CountingRetrier(limit: 3)
        var request = TransferRequest(url: server.url("/f"))
        request.segments = segments
        let outcome = await manager.download(request, to: place.target()).outcome
        try await loss.end()
        #expect(resource.difference(fromFileAt: try outcome.result.get().path) == nil)
    }

    // MARK: F50

    @Test("F50: a thousand downloads from a host that fails wait for it together, and complete when it is well again")
    func failingHost() async throws {
        let small = Resource(size: 1_000)
        let server = try MisbehavingServer {
            $0.number < 30 ? MisbehavingResponse(500) : MisbehavingResponse(honest: small, to: $0)
        }
        let manager = try SessionManager(configuration: .test { $0.maximumConnectionsPerHost = 8 })
        manager.intercept(
            with: DefaultRetrier(policy: RetryPolicy(attempts: 20, baseDelay: 50, maximumDelay: 200)))
        let requests = (0..<1_000).map { number in
            manager.download(
                server.url("/\(number)"), to: place.target("f\(number)", owner: "o\(number)", part: ".p\(number)")
            ).resume()
        }
        for request in requests { _ = try await request.value }
        // Only the refused requests were repeated.
        #expect(server.requests.count == 1_000 + 30)
        #expect(place.names.count == 1_000)
    }

    // MARK: F51

    /// The ways in which an HTTP/2 server aborts a body (RFC 9113, sections 6.4 and 6.8).
    enum Breach: String, CaseIterable {
        case reset, resetWithoutError, goAway, goAwayBefore
    }

    /// Returns frames: the server's settings, the head, the first bytes of the body, and the abort.
    private func frames(_ breach: Breach) -> [UInt8] {
        func frame(_ type: UInt8, _ flags: UInt8, stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
            [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type, flags, 0, 0, 0, stream] + payload
        }
        let size = Array("\(resource.size)".utf8)
        // The fields :status 200 and content-length without indexing (RFC 7541, section 6.2.2).
        let head = frame(1, 4, stream: 1, [0x88, 0x0F, 0x0D, UInt8(size.count)] + size)
        let body = (0..<4).flatMap { frame(0, 0, stream: 1, resource.bytes($0 * 10_000..<($0 + 1) * 10_000)) }
        let end =
            switch breach {
            case .reset: frame(3, 0, stream: 1, [0, 0, 0, 2])
            case .resetWithoutError: frame(3, 0, stream: 1, [0, 0, 0, 0])
            case .goAway: frame(7, 0, stream: 0, [0, 0, 0, 1, 0, 0, 0, 0])
            case .goAwayBefore: frame(7, 0, stream: 0, [0, 0, 0, 0, 0, 0, 0, 2])
            }
        return frame(4, 0, stream: 0, []) + frame(4, 1, stream: 0, []) + head + body + end
    }

    @Test(
        "F51: a stream of HTTP/2 that is reset, or whose connection goes away, is no file; HTTP/1.1 brings it",
        arguments: Breach.allCases)
    func brokenStream(breach: Breach) async throws {
        let server = try RawServer([frames(breach), Self.answer(of: resource)])
        let manager = try SessionManager(
            configuration: .test {
                $0.httpVersion = .http2PriorKnowledge
                // If libcurl does not wake up for the error, the stall time-out ends the attempt.
                $0.stallTimeout = 1_000
            })
        let retrier = CountingRetrier(limit: 3)
        manager.retrier = retrier
        let file = try await manager.download(server.url(), to: place.target()).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(retrier.asked.withLock { $0.count } == 1)
        #expect(server.requests.map { $0.hasPrefix("GET / HTTP/1.1") } == [false, true])
    }

    // MARK: F54

    @Test("F54: a certificate that expires or changes under a download ends it, and what came stays for a right one")
    func changedCertificate() async throws {
        let certificates = try await TestCertificates.shared
        let resource = Resource(size: 6 << 20)
        let port = try FreePort.next()
        func serving(_ identity: TestCertificates.Identity, rate: String = "") async throws -> Nginx {
            let nginx = try await Nginx(tls: .init(certificate: identity), settings: rate, port: port)
            try nginx.publish(resource, as: "f")
            // The ETag is derived from the modification time.
            let time = timeval(tv_sec: 1_600_000_000, tv_usec: 0)
            utimes("\(nginx.root)/f", [time, time])
            return nginx
        }
        let manager = try SessionManager(configuration: .test())
        let slow = try await serving(certificates.server, rate: "limit_rate 2m;")
        var request = TransferRequest(url: slow.url("/f", host: "localhost"))
        request.caCertificates = certificates.authority.text
        request.segments = .one
        let begun = manager.download(request, to: place.target()).resume()
        try await eventually(that: "bytes come") { begun.progress.completedBytes >= 1 << 20 }
        begun.cancel()
        var data = try #require(await begun.outcome.resumeData)
        slow.stop()
        for identity in [certificates.expired, certificates.selfSigned] {
            let wrong = try await serving(identity)
            let outcome = await manager.download(request, to: place.target(), resumingWith: data).outcome
            #expect(outcome.result.error?.code == .tls)
            data = try #require(outcome.resumeData)
            #expect(data.ranges.count >= 1 << 20)
            #expect(wrong.accesses().isEmpty)
            wrong.stop()
        }
        let right = try await serving(certificates.server)
        let file = try await manager.download(request, to: place.target(), resumingWith: data).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(right.accesses().map(\.status) == [206])
    }

    @Test("a connection that breaks while TLS begins is tried again; a server that speaks no TLS is not trusted less")
    func brokenHandshake() async throws {
        // The ClientHello never ends the request head that the server waits for: the server takes 16 bytes as a request
        // and closes the connection.
        let cut = try RawServer([[]], head: 16)
        let manager = try SessionManager(configuration: .test())
        let url = "https://127.0.0.1:\(cut.port)/f"
        let outcome = await manager.download(TransferRequest(url: url), to: place.target()).outcome
        let error = try #require(outcome.result.error)
        #expect(error.code == .cannotConnect && RetryClass(error) == .soon)
        let plain = try RawServer([Array("220 ready\r\n".utf8)], head: 16)
        let other = await manager.download(
            TransferRequest(url: "https://127.0.0.1:\(plain.port)/f"), to: place.target()
        ).outcome
        #expect(other.result.error?.code == .tls)
    }
}
