import Curl
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// Tests of SOCKS proxies of the kinds `socks4` and `socks5`. The client resolves names for them, and therefore judges
/// the addresses.
@Suite("Denied networks behind a proxy that gets addresses")
struct DeniedNamesBehindProxyTests {
    private let place: Place
    private let resource = Resource(size: 300_000)
    /// A list that contains 127.0.0.2 only.
    private static let second = [IPNetwork(ipv4: 0x7F00_0002, prefixLength: 32)]
    private static let refusal = "the address 127.0.0.2 of inner.example is in the denied network 127.0.0.2/32"

    init() throws { place = try Place() }

    private func manager(proxy: String, _ lookup: @escaping Resolver.Lookup) throws -> SessionManager {
        let delegate = SessionDelegate()
        let configuration = SessionConfiguration.test {
            $0.deniedNetworks = Self.second
            $0.proxy = proxy
            $0.hostKeys = .fingerprint("SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        }
        let session = try Session(configuration: configuration, delegate: delegate, resolver: Resolver(lookup: lookup))
        return try #require(SessionManager(session: session, delegate: delegate))
    }

    private func error(_ url: String, by manager: SessionManager) async -> TransferError? {
        await manager.download(url, to: place.target()).outcome.result.error
    }

    @Test(
        "A11: a name that leads into a denied network is refused before the proxy hears of it, in every protocol",
        arguments: ["socks5", "SOCKS5", "socks4", "socks"])
    func denied(scheme: String) async throws {
        let proxy = try ScriptedServer([:])
        let manager = try manager(proxy: "\(scheme)://127.0.0.1:\(proxy.port)") { _ in .success(["127.0.0.2"]) }
        for scheme in ["http", "https", "sftp"] {
            let error = await error("\(scheme)://u:p@inner.example/f", by: manager)
            #expect(error?.code == .addressNotAllowed)
            #expect(error?.message == Self.refusal)
            #expect(error.map { RetryClass($0) } == .never)
        }
        let upload = await manager.upload(
            .data([1]), with: TransferRequest(url: "http://inner.example/f", method: .put)
        ).outcome
        #expect(upload.result.error?.message == Self.refusal)
        let stream = await manager.stream(host: "inner.example", port: 1).outcome.error
        #expect(stream?.message == Self.refusal)
        #expect(proxy.connectionsAccepted == 0)
    }

    @Test(
        "A12: of a name with several addresses the proxy is told one that is allowed, however the name is written",
        arguments: ["many.example", "many.example.", "MANY.Example"])
    func others(name: String) async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let proxy = try await SOCKSProxy()
        let manager = try manager(proxy: proxy.url()) { _ in .success(["127.0.0.2", "127.0.0.1"]) }
        let file = try await manager.download("http://\(name):\(server.port)/f", to: place.target()).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        try await eventually(that: "the proxy says whom it connected to") { !proxy.targets.isEmpty }
        #expect(proxy.targets == ["127.0.0.1:\(server.port)"])
    }

    @Test("A12: a SOCKS4 proxy too is told the address that was judged")
    func socks4() async throws {
        let heard = Notes<[UInt8]>()
        let proxy = try TalkingPeer { socket in
            heard.add(try socket.receive())
            // Request rejected (SOCKS4, the reply's second byte).
            socket.send([0, 91, 0, 0, 0, 0, 0, 0])
        }
        let manager = try manager(proxy: "socks4://127.0.0.1:\(proxy.port)") { _ in
            .success(["127.0.0.2", "192.0.2.7"])
        }
        #expect(await error("http://many.example:80/f", by: manager)?.code == .cannotConnect)
        #expect(heard.all.first.map { Array($0.prefix(8)) } == [4, 1, 0, 80, 192, 0, 2, 7])
    }

    @Test("A12: a redirect to a name, and a name that leads elsewhere at the second attempt, are judged anew")
    func anew() async throws {
        let server = try ScriptedServer(["/f": [.redirect("http://inner.example/secret")]])
        let proxy = try await SOCKSProxy()
        let lookups = Atomic<Int>(0)
        let manager = try manager(proxy: proxy.url()) { host in
            let isFirst = host == "rebound.example" && lookups.wrappingAdd(1, ordering: .relaxed).oldValue == 0
            return .success([host == "outer.example" || isFirst ? "127.0.0.1" : "127.0.0.2"])
        }
        #expect(await error("http://outer.example:\(server.port)/f", by: manager)?.message == Self.refusal)
        let retrier = CountingRetrier(limit: 1)
        manager.retrier = retrier
        // Port 1 has no listener: the second attempt resolves the name again.
        let rebound = await error("http://rebound.example:1/f", by: manager)
        #expect(
            rebound?.message == "the address 127.0.0.2 of rebound.example is in the denied network 127.0.0.2/32")
        #expect(retrier.asked.withLock { $0.map(\.code) } == [.cannotConnect, .addressNotAllowed])
        #expect(lookups.load(ordering: .relaxed) == 2)
        #expect(proxy.targets.allSatisfy { !$0.hasPrefix("127.0.0.2") })
    }

    @Test("A11: FTP by a name, whose data connections libcurl would look up itself, is refused; by an address it works")
    func dataConnections() async throws {
        let server = try ScriptedFTPServer(.init(files: ["file": [1, 2, 3]]))
        let proxy = try await SOCKSProxy()
        let manager = try manager(proxy: proxy.url()) { _ in .success(["127.0.0.1"]) }
        let refused = await error(server.url("/file").replacing("127.0.0.1", with: "outer.example"), by: manager)
        #expect(refused?.code == .addressNotAllowed)
        #expect(refused?.message.contains("socks5h://") == true)
        #expect(proxy.targets.isEmpty)
        #expect(Array(try await manager.request(TransferRequest(url: server.url("/file"))).value) == [1, 2, 3])
    }

    @Test("a proxy that gets names gets them, and nobody here looks them up")
    func namesOfTheProxy() async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let proxy = try await SOCKSProxy()
        let manager = try manager(proxy: proxy.url(resolving: true)) { _ in .failure(.unknownName) }
        let file = try await manager.download("http://localhost:\(server.port)/f", to: place.target()).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    @Test("without denied networks too the session's resolver finds the address that the proxy gets")
    func resolver() async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let ftp = try ScriptedFTPServer(.init(files: ["file": [1, 2, 3]]))
        let proxy = try await SOCKSProxy()
        let asked = Notes<String>()
        let delegate = SessionDelegate()
        let session = try Session(
            configuration: .test { $0.proxy = "socks5://proxy.test:\(proxy.port)" }, delegate: delegate,
            resolver: Resolver { host in
                asked.add(host)
                return .success(["127.0.0.1"])
            })
        let manager = try #require(SessionManager(session: session, delegate: delegate))
        let file = try await manager.download("http://server.test:\(server.port)/f", to: place.target()).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(asked.all == ["proxy.test", "server.test"])
        // libcurl resolves the name of the data connection, with its own port.
        let other = ftp.url("/file").replacing("127.0.0.1", with: "localhost")
        #expect(Array(try await manager.request(TransferRequest(url: other)).value) == [1, 2, 3])
        #expect(asked.all == ["proxy.test", "server.test", "localhost"])
    }
}
