import Curl
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Denied networks")
struct DeniedNetworksTests {
    private let place: Place
    private let resource = Resource(size: 300_000)

    init() throws { place = try Place() }

    /// The networks 127.0.0.0/8 and ::1.
    private static let local = [
        IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8), IPNetwork(ipv6: 1, prefixLength: 128),
    ]
    /// A list that contains 127.0.0.2 only.
    private static let second = [IPNetwork(ipv4: 0x7F00_0002, prefixLength: 32)]

    private func manager(
        _ denied: [IPNetwork], _ lookup: @escaping Resolver.Lookup = Resolver.system,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        let delegate = SessionDelegate()
        let configuration = SessionConfiguration.test {
            $0.deniedNetworks = denied
            change(&$0)
        }
        let session = try Session(configuration: configuration, delegate: delegate, resolver: Resolver(lookup: lookup))
        return try #require(SessionManager(session: session, delegate: delegate))
    }

    private func error(
        _ url: String, by manager: SessionManager, _ change: (inout TransferRequest) -> Void = { _ in }
    ) async -> TransferError? {
        var request = TransferRequest(url: url)
        change(&request)
        return await manager.download(request, to: place.target()).outcome.result.error
    }

    @Test(
        "A11: no protocol connects to a denied address, for a download or an upload",
        arguments: ["http", "https", "ftp", "ftps", "sftp"])
    func protocols(scheme: String) async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try manager(Self.local)
        let url = "\(scheme)://u:p@127.0.0.1:\(server.port)/f"
        let error = await error(url, by: manager)
        #expect(error?.code == .addressNotAllowed)
        #expect(error?.message == "the address 127.0.0.1 is in the denied network 127.0.0.0/8")
        let upload = await manager.upload(.data([1]), with: TransferRequest(url: url, method: .put)).outcome
        #expect(upload.result.error?.code == .addressNotAllowed)
        #expect(server.connectionsAccepted == 0)
    }

    @Test(
        "A11: whatever notation names it",
        arguments: [
            "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "0", "0.0.0.0", "localhost",
            "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::]", "127.0.0.1.",
        ])
    func notations(host: String) async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let error = await error("http://\(host):\(server.port)/f", by: try manager(Self.local))
        // Some systems do not accept the last notation as an address.
        #expect(error?.code == .addressNotAllowed || host.hasSuffix(".") && error?.code == .unknownHost)
        #expect(server.connectionsAccepted == 0)
    }

    @Test("A11: a redirect to a denied address is not followed, and fails for good")
    func redirect() async throws {
        let inner = try ScriptedServer(host: 2, ["/secret": [.status(200, body: "x")]])
        let server = try ScriptedServer(["/f": [.redirect(inner.url("/secret"))]])
        let manager = try manager(Self.second)
        let error = await error(server.url("/f"), by: manager)
        #expect(error?.code == .addressNotAllowed)
        #expect(error?.message == "the address 127.0.0.2 is in the denied network 127.0.0.2/32")
        #expect(error.map { RetryClass($0) } == .never)
        #expect(inner.connectionsAccepted == 0)
    }

    @Test("A12: a name that leads to a denied address at the second attempt is judged anew")
    func rebinding() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.status(200, body: "x")]])
        let lookups = Atomic<Int>(0)
        let manager = try manager(Self.second) { _ in
            .success([lookups.wrappingAdd(1, ordering: .relaxed).oldValue == 0 ? "127.0.0.1" : "127.0.0.2"])
        }
        let retrier = CountingRetrier(limit: 1)
        manager.retrier = retrier
        // The first address has no listener at this port: the second attempt resolves the name again.
        let error = await error("http://rebound.example:\(inner.port)/f", by: manager)
        #expect(
            error?.message == "the address 127.0.0.2 of rebound.example is in the denied network 127.0.0.2/32")
        #expect(retrier.asked.withLock { $0.map(\.code) } == [.cannotConnect, .addressNotAllowed])
        #expect(lookups.load(ordering: .relaxed) == 2)
        #expect(inner.connectionsAccepted == 0)
    }

    @Test(
        "A12: of a name with several addresses the allowed ones serve",
        arguments: [
            ["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"], ["::ffff:127.0.0.2", "127.0.0.1"],
            ["127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.1"],
        ])
    func others(addresses: [String]) async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let inner = try ScriptedServer(host: 2, port: server.port, ["/f": [.status(200, body: "x")]])
        let manager = try manager(Self.second) { _ in .success(addresses) }
        let begin = ContinuousClock.now
        let file = try await manager.download("http://many.example:\(server.port)/f", to: place.target()).value
        // libcurl waits for half of the connect time-out at a refused address.
        #expect(begin.duration(to: .now) < .seconds(20))
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(inner.connectionsAccepted == 0)
    }

    @Test("A12: where an allowed address of the name does not answer, that is what failed, and may heal")
    func othersAreDown() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.status(200, body: "x")]])
        for addresses in [["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]] {
            let manager = try manager(Self.second) { _ in .success(addresses) }
            let error = await error("http://many.example:\(inner.port)/f", by: manager)
            #expect(error?.code == .cannotConnect)
        }
        #expect(inner.connectionsAccepted == 0)
    }

    @Test("A11: a denied source of a file is left for its mirrors")
    func mirrors() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try manager(Self.second)
        for (own, mirror) in [(inner, server), (server, inner)] {
            var request = TransferRequest(url: own.url("/f"))
            request.mirrors = [mirror.url("/f")]
            request.segments = .fixed(4)
            let target = place.target("\(own.port)", digest: sha256(of: resource))
            let file = try await manager.download(request, to: target).value
            #expect(resource.difference(fromFileAt: file.path) == nil)
        }
        #expect(inner.connectionsAccepted == 0)
    }

    @Test(
        "A11, A27: FTP's data connections are judged too, and go to the server's own address", arguments: [false, true])
    func passive(namesPort: Bool) async throws {
        let server = try ScriptedFTPServer(.init(files: ["file": [1, 2, 3]]))
        server.manner.passiveAddress = "127,0,0,2"
        if namesPort { server.manner.replies["EPSV"] = "500 what?" }
        let manager = try manager(Self.second)
        let outcome = await manager.request(TransferRequest(url: server.url("/file"))).outcome
        #expect(try outcome.result.get().map { Array($0) } == [1, 2, 3])
        #expect(outcome.metrics.last?.remoteAddress == "127.0.0.1")
    }

    @Test("A11: a stream is not connected to a denied address")
    func streams() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let manager = try manager(Self.local)
        let error = await manager.stream(host: "127.0.0.1", port: peer.port).outcome.error
        #expect(error?.code == .addressNotAllowed)
        #expect(peer.connections == 0)
        let other = try self.manager(Self.second)
        let allowed = other.stream(host: "127.0.0.1", port: peer.port)
        try await allowed.write([7])
        #expect(try await allowed.readData(ofMinLength: 1).data == [7])
        allowed.cancel()
        withExtendedLifetime(other) {}
    }

    // MARK: Proxies

    @Test("A11: the session's own proxy may lie anywhere; addresses behind it are judged, names are its own to judge")
    func ownProxy() async throws {
        let proxy = try ScriptedServer(["http://inner.example/f": [.serve(resource)]])
        let manager = try manager(Self.local) { _ in
            .failure(.unknownName)
        } _: {
            $0.proxy = "http://127.0.0.1:\(proxy.port)"
        }
        let file = try await manager.download("http://inner.example/f", to: place.target()).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        let count = proxy.connectionsAccepted
        for url in ["http://127.0.0.1/f", "http://0x7f.1/f", "http://[::ffff:127.0.0.1]/f", "ftp://127.0.0.1/f"] {
            #expect(await error(url, by: manager)?.code == .addressNotAllowed)
        }
        #expect(proxy.connectionsAccepted == count)
        let stream = await manager.stream(host: "127.0.0.1", port: 1).outcome.error
        #expect(stream?.code == .addressNotAllowed)
    }

    @Test(
        "A11: a request's own proxy is an address like any other", arguments: ["http", "socks5", "socks5h", "socks4"])
    func requestsProxy(scheme: String) async throws {
        let proxy = try ScriptedServer(["http://inner.example/f": [.serve(resource)]])
        let manager = try manager(Self.local) { _ in .success(["192.0.2.1"]) }
        for url in ["http://inner.example/f", "ftp://192.0.2.1/f"] {
            let error = await error(url, by: manager) { $0.proxy = "\(scheme)://127.0.0.1:\(proxy.port)" }
            #expect(error?.code == .addressNotAllowed)
            #expect(
                error?.message
                    == "the address 127.0.0.1 of the proxy 127.0.0.1 is in the denied network 127.0.0.0/8")
        }
        #expect(proxy.connectionsAccepted == 0)
    }

    @Test(
        "A11: whatever notation names it, and by whichever way",
        arguments: [
            "127.0.0.2", "127.0.0.2.", "127.0.2.", "127.2", "127.2.", "2130706434", "2130706434.", "0x7f000002",
            "0x7F.0.0.2.", "0x7f.2.", "0177.0.0.02", "0177.0.0.02.", "017700000002.", "[::ffff:127.0.0.2]",
            "[::ffff:7f00:2]", "[64:ff9b::127.0.0.2]", "１２７.0.0.2", "127。0。0。2",
        ], ["", "http", "socks4", "socks4a", "socks5", "socks5h"])
    func notations(host: String, by way: String) async throws {
        let proxy = try ScriptedServer([:])
        let manager = try manager(Self.second, Resolver.system) {
            if !way.isEmpty { $0.proxy = "\(way)://127.0.0.1:\(proxy.port)" }
        }
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        for scheme in ["http", "https", "ftp", "sftp"] {
            let error = await error("\(scheme)://u:p@\(host):\(inner.port)/f", by: manager)
            // Without a proxy the system or libcurl may not accept the notation as a name.
            let isUnknown = way.isEmpty && [.unknownHost, .resolverUnavailable, .invalidRequest].contains(error?.code)
            #expect(error?.code == .addressNotAllowed || isUnknown, "\(scheme): \(error?.message ?? "none")")
        }
        #expect(inner.connectionsAccepted == 0 && proxy.connectionsAccepted == 0)
    }
}
