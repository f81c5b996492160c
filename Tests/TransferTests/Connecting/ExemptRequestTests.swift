import Curl
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

/// Requests of one session, to some of which the denied networks do not apply.
@Suite("Requests to which the denied networks do not apply")
struct ExemptRequestTests {
    private let place: Place
    private let resource = Resource(size: 100_000)
    /// A list that contains 127.0.0.2 only.
    private static let second = [IPNetwork(ipv4: 0x7F00_0002, prefixLength: 32)]

    init() throws { place = try Place() }

    private func manager(
        _ denied: [IPNetwork] = second, _ lookup: @escaping Resolver.Lookup = Resolver.system,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        let delegate = SessionDelegate()
        let configuration = SessionConfiguration.test {
            $0.deniedNetworks = denied
            // Each loop has its own connections.
            $0.loops = 1
            change(&$0)
        }
        let session = try Session(configuration: configuration, delegate: delegate, resolver: Resolver(lookup: lookup))
        return try #require(SessionManager(session: session, delegate: delegate))
    }

    private func request(_ url: String, isExempt: Bool, method: HTTPRequest.Method = .get) -> TransferRequest {
        var request = TransferRequest(url: url, method: method)
        request.ignoresDeniedNetworks = isExempt
        return request
    }

    @Test("A11: an exempt request follows redirects and uses mirrors into denied networks, and no other request does")
    func exempt() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let server = try ScriptedServer(["/moved": [.redirect(inner.url("/f"))]])
        let manager = try manager()
        for (number, url) in [inner.url("/f"), server.url("/moved")].enumerated() {
            let file = try await manager.download(request(url, isExempt: true), to: place.target("\(number)")).value
            #expect(resource.difference(fromFileAt: file.path) == nil)
        }
        var mirrored = request(server.url("/none"), isExempt: true)
        mirrored.mirrors = [inner.url("/f")]
        let target = place.target("mirrored", digest: sha256(of: resource))
        #expect(resource.difference(fromFileAt: try await manager.download(mirrored, to: target).value.path) == nil)
        let count = inner.requests().count
        mirrored.ignoresDeniedNetworks = false
        let refused = await manager.download(mirrored, to: place.target("refused", digest: sha256(of: resource)))
            .outcome
        #expect(refused.result.error != nil)
        #expect(inner.requests().count == count)
    }

    @Test("A11: file servers and streams in denied networks are for exempt requests alone")
    func otherProtocols() async throws {
        let local = [IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)]
        let server = try ScriptedFTPServer(.init(files: ["file": [1, 2, 3]]))
        let peer = try TalkingPeer { try $0.echo() }
        let manager = try manager(local)
        #expect(Array(try await manager.request(request(server.url("/file"), isExempt: true)).value) == [1, 2, 3])
        let refused = await manager.request(request(server.url("/file"), isExempt: false)).outcome
        #expect(refused.error?.code == .addressNotAllowed)
        let stream = await manager.stream(host: "127.0.0.1", port: peer.port).outcome.error
        #expect(stream?.code == .addressNotAllowed && peer.connections == 0)
    }

    @Test("A25: a connection of an exempt request into a denied network is not used by another, in whatever order")
    func keptConnection() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.status(200, body: "abc")]])
        let manager = try manager()
        for _ in 0..<3 {
            let refused = await manager.request(request(inner.url("/f"), isExempt: false)).outcome
            #expect(refused.error?.code == .addressNotAllowed)
            #expect(refused.error?.message == "the address 127.0.0.2 is in the denied network 127.0.0.2/32")
            #expect(refused.error.map { RetryClass($0) } == .never)
            // The second one uses the connection of the first.
            for _ in 0..<2 {
                #expect(try await manager.request(request(inner.url("/f"), isExempt: true)).string == "abc")
            }
        }
        #expect(inner.requests().count == 6 && inner.connectionsAccepted == 3)
    }

    @Test(
        "a connection of a request that is not exempt serves exempt ones, and the other way round where it is allowed")
    func sharedConnection() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let manager = try manager()
        for isExempt in [false, true, false, true] {
            #expect(try await manager.request(request(server.url("/f"), isExempt: isExempt)).string == "abc")
        }
        #expect(server.connectionsAccepted == 1)
    }

    @Test(
        "A25: in place of a connection into a denied network, the request opens one to an allowed address of the name")
    func otherAddress() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "outer")]])
        let inner = try ScriptedServer(host: 2, port: server.port, ["/f": [.status(200, body: "inner")]])
        let manager = try manager { _ in .success(["127.0.0.2", "127.0.0.1"]) }
        let url = "http://many.example:\(server.port)/f"
        #expect(try await manager.request(request(url, isExempt: true)).string == "inner")
        let other = manager.request(request(url, isExempt: false))
        #expect(try await other.string == "outer")
        // The refused connection carried nothing, and is no step of the request.
        #expect(other.metrics.exchanges.count == 1 && other.metrics.last?.isReusedConnection == false)
        #expect(other.metrics.last?.remoteAddress == "127.0.0.1")
        #expect(inner.requests().count == 1 && server.requests().count == 1)
    }

    @Test("A25: nothing of a body is sent on a connection into a denied network")
    func body() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "outer")]])
        let inner = try ScriptedServer(host: 2, port: server.port, ["/f": [.status(200, body: "inner")]])
        let manager = try manager { _ in .success(["127.0.0.2", "127.0.0.1"]) }
        let url = "http://many.example:\(server.port)/f"
        #expect(try await manager.request(request(url, isExempt: true)).string == "inner")
        let upload = manager.upload(.data([1, 2]), with: request(url, isExempt: false, method: .post))
        #expect(await upload.outcome.error == nil)
        #expect(server.requests().map(\.method) == ["POST"] && server.requests().map(\.body) == [[1, 2]])
        #expect(inner.requests().map(\.method) == ["GET"])
    }

    @Test("A25: over HTTP/2 no request shares a connection into a denied network, and the exempt ones there go on")
    func multiplexed() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: certificates.server), http2: true)
        try nginx.publish(Resource(size: 10_000), as: "f")
        let manager = try manager([IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)]) { _ in
            .success(["127.0.0.1"])
        } _: {
            $0.httpVersion = .http2
        }
        let url = nginx.url("/f", host: "localhost")
        let requests = (0..<40).map { number in
            var request = request(url, isExempt: number.isMultiple(of: 2))
            request.caCertificates = certificates.authority.text
            return request
        }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for request in requests {
                group.addTask {
                    let outcome = await manager.request(request).outcome
                    return request.ignoresDeniedNetworks
                        ? outcome.error == nil : outcome.error?.code == .addressNotAllowed
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(nginx.accesses().count == 20)
        #expect(nginx.accesses().allSatisfy { $0.version == "HTTP/2.0" })
    }

    @Test("A25: a tunnel that an exempt request opened through a proxy to a denied address is not used by another")
    func tunnel() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "outer")]])
        let inner = try ScriptedServer(host: 2, port: server.port, ["/f": [.status(200, body: "inner")]])
        let proxy = try await SOCKSProxy()
        let manager = try manager(Self.second) { _ in
            .success(["127.0.0.2", "127.0.0.1"])
        } _: {
            $0.proxy = proxy.url()
        }
        let url = "http://many.example:\(server.port)/f"
        #expect(try await manager.request(request(url, isExempt: true)).string == "inner")
        #expect(try await manager.request(request(url, isExempt: false)).string == "outer")
        #expect(inner.requests().count == 1)
    }

    @Test(
        "A11: a proxy of an exempt request's own may be in a denied network, and only there for it",
        arguments: [true, false])
    func proxies(isExempt: Bool) async throws {
        let proxy = try ScriptedServer(host: 2, ["http://outer.example/f": [.status(200, body: "abc")]])
        let manager = try manager { _ in .success(["192.0.2.1"]) }
        var first = request("http://outer.example/f", isExempt: true)
        first.proxy = "http://127.0.0.2:\(proxy.port)"
        #expect(try await manager.request(first).string == "abc")
        first.ignoresDeniedNetworks = isExempt
        let outcome = await manager.request(first).outcome
        #expect(outcome.error?.code == (isExempt ? nil : .addressNotAllowed))
        #expect(proxy.requests().count == (isExempt ? 2 : 1))
    }
}
