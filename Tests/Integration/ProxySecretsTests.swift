import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

/// The secrets of a proxy and of the servers behind it, which must not reach each other.
@Suite("Secrets on the way through a proxy", .serialized, .timeLimit(.minutes(2)))
struct ProxySecretsTests {
    /// A forward proxy that records every line that its clients send to it, forwards requests unchanged, and does not
    /// record the bytes in a tunnel (CONNECT).
    private final class Proxy: Sendable {
        private let heard = Heard()
        private let peer: TalkingPeer

        private final class Heard: Sendable { let lines = Mutex<[String]>([]) }

        /// - Parameter hasLogins: whether it asks for a login.
        init(hasLogins: Bool = true) throws {
            let heard = heard
            peer = try TalkingPeer { socket in
                let head = try socket.readHead()
                heard.lines.withLock { $0 += head }
                let words = head.first?.split(separator: " ") ?? []
                guard words.count == 3, let port = Self.port(words[1]) else { return }
                // Asked for a login, a client with one repeats its request.
                if !head.contains(where: { $0.hasPrefix("Proxy-Authorization:") }), hasLogins {
                    let offer = "Proxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\nConnection: close"
                    socket.send(Array("HTTP/1.1 407 who\r\n\(offer)\r\n\r\n".utf8))
                    return
                }
                if words[0] == "CONNECT" {
                    socket.send(Array("HTTP/1.1 200 go on\r\n\r\n".utf8))
                    return try socket.relay(to: port)
                }
                let server = try StreamSocket(port: port)
                let path = words[1].drop { $0 != "/" }.dropFirst(2).drop { $0 != "/" }
                let lines = ["\(words[0]) \(path) HTTP/1.1"] + head.dropFirst() + ["Connection: close"]
                server.send(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
                socket.send(try server.readToEnd())
            }
        }

        /// Returns the port of `host:port` or `http://host:port/path`.
        private static func port(_ target: Substring) -> Int? {
            let authority = target.hasPrefix("http://") ? target.dropFirst(7).prefix { $0 != "/" } : target
            return authority.split(separator: ":").last.flatMap { Int($0) }
        }

        var url: String { "http://ann:of-the-proxy@127.0.0.1:\(peer.port)" }
        var bareURL: String { "http://127.0.0.1:\(peer.port)" }
        var lines: [String] { heard.lines.withLock { $0 } }
    }

    /// `ann:of-the-proxy` in Base64.
    private static let proxyLogin = "YW5uOm9mLXRoZS1wcm94eQ=="
    /// `ben:of-the-origin` in Base64.
    private static let originLogin = "YmVuOm9mLXRoZS1vcmlnaW4="
    private static let originSecrets = [originLogin, "of-the-cookie", "of-the-field"]
    private static let fields = ["authorization", "proxy-authorization", "cookie", "x-api-key"]
    private static let echo = Nginx.Location.echo("/echo", headers: fields)
    /// As ``echo``, for clients with a login only.
    private static let strictEcho = Nginx.Location.echo("/strict", headers: fields, challenges: true)

    private let place: TemporaryDirectory
    private let proxy: Proxy
    private let openProxy: Proxy

    init() throws {
        (place, proxy, openProxy) = (try TemporaryDirectory(), try Proxy(), try Proxy(hasLogins: false))
        try place.write("of-the-origin\n", to: "password")
    }

    private func daemon() async throws -> DaemonProcess {
        let authority = try await TestCertificates.shared.authority.path
        // The environment's proxy exceptions must have no effect.
        let daemon = try DaemonProcess(
            configuration: quickRetries + "tls: {ca-file: \(authority)}\n",
            environment: ["no_proxy": "*", "NO_PROXY": "localhost,127.0.0.1"])
        try await daemon.start()
        return daemon
    }

    /// Returns the server's echo of a request that carries all of the origin's secrets through the proxy.
    private func fetch(
        _ url: String, by daemon: DaemonProcess, proxy: String? = nil, _ more: [String] = []
    ) async throws -> String {
        let secrets = [
            "--user", "ben", "--password-file", place.file("password"), "--header", "Cookie: session=of-the-cookie",
            "--header", "X-Api-Key: of-the-field",
        ]
        let proxy = ["--proxy", proxy ?? self.proxy.url]
        let added = try await daemon.dlctl(["add", "--wait", "-o", "echo"] + secrets + proxy + more + [url])
        #expect(added.succeeded, "\(added.error)")
        return try text(of: daemon.path("echo"))
    }

    @Test("A8: in a tunnel the proxy hears nothing of the server's, and the server nothing of the proxy's")
    func tunnel() async throws {
        let identity = try await TestCertificates.shared.server
        let nginx = try await Nginx([Self.echo], tls: .init(certificate: identity))
        let daemon = try await daemon()
        let echoed = try await fetch(nginx.url("/echo", host: "localhost"), by: daemon)
        // Each received its own secrets, so that a leak would be visible.
        for secret in Self.originSecrets { #expect(echoed.contains(secret), "\(secret)") }
        #expect(proxy.lines.contains { $0.contains(Self.proxyLogin) })
        #expect(!echoed.contains(Self.proxyLogin))
        for secret in Self.originSecrets { #expect(!proxy.lines.contains { $0.contains(secret) }, "\(secret)") }
        // The first one had no login.
        #expect(proxy.lines.count { $0.hasPrefix("CONNECT localhost:\(nginx.port)") } == 2)
        daemon.expectTidy()
    }

    @Test(
        "A8: a Proxy-Authorization of a task's own goes to a proxy that reads the request, and to no server",
        arguments: ["http", "https", "socks5"])
    func ownField(kind: String) async throws {
        let identity = try await TestCertificates.shared.server
        let nginx = try await Nginx(
            [Self.echo, Self.strictEcho], tls: kind == "https" ? .init(certificate: identity) : nil)
        let daemon = try await daemon()
        let socks = try await SOCKSProxy()
        let header = ["--header", "Proxy-Authorization: Basic of-the-field-for-proxies"]
        let echoed = try await fetch(
            nginx.url("/strict", host: "localhost"), by: daemon,
            proxy: kind == "socks5" ? socks.url() : openProxy.bareURL, header)
        #expect(echoed.contains(Self.originLogin))
        // This proxy forwards the field, which other proxies remove.
        #expect(echoed.contains("of-the-field-for-proxies") == (kind == "http"))
        if kind == "http" { #expect(openProxy.lines.contains("Proxy-Authorization: Basic of-the-field-for-proxies")) }
        // Without a proxy the field has no recipient.
        let plain = try await daemon.dlctl(
            ["add", "--wait", "-o", "plain"] + header + [nginx.url("/echo", host: "localhost")])
        #expect(plain.succeeded, "\(plain.error)")
        #expect(try !text(of: daemon.path("plain")).contains("of-the-field-for-proxies"))
        daemon.expectTidy()
    }

    @Test(
        "A8: behind a redirect through the proxy, to https or to another host, no server gets another one's secrets",
        arguments: [true, false])
    func redirect(secure: Bool) async throws {
        let identity = try await TestCertificates.shared.server
        let target = try await Nginx([Self.echo], tls: secure ? .init(certificate: identity) : nil)
        let redirect = "return 302 '\(target.url("/echo", host: "localhost"))';"
        let first = try await Nginx([.custom("/f", Nginx.Location.challenge + redirect)])
        let daemon = try await daemon()
        let echoed = try await fetch(first.url("/f"), by: daemon)
        // The first server received its own secrets through the proxy.
        for secret in Self.originSecrets { #expect(proxy.lines.contains { $0.contains(secret) }, "\(secret)") }
        for secret in Self.originSecrets { #expect(!echoed.contains(secret), "\(secret)") }
        // The tunnel carries none of the proxy's secrets; without a tunnel the proxy would have to remove its login.
        #expect(echoed.contains(Self.proxyLogin) == !secure)
        let hop = try #require(proxy.lines.lastIndex { $0.hasPrefix("CONNECT ") || $0.hasPrefix("GET ") })
        #expect(proxy.lines[hop].hasPrefix(secure ? "CONNECT localhost:\(target.port)" : "GET http://localhost"))
        let said = proxy.lines[hop...]
        for secret in Self.originSecrets { #expect(!said.contains { $0.contains(secret) }, "\(secret)") }
        daemon.expectTidy()
    }

    @Test("A9: a redirect from https to http through the proxy is not followed, and nothing of it is said")
    func downgrade() async throws {
        let identity = try await TestCertificates.shared.server
        let target = try ScriptedServer(["/f": [.status(200, body: "x")]])
        let location = Nginx.Location.custom("/down", "return 302 '\(target.url("/f"))';")
        let nginx = try await Nginx([location], tls: .init(certificate: identity))
        let daemon = try await daemon()
        let added = try await daemon.dlctl(
            "add", "--wait", "--proxy", proxy.url, nginx.url("/down", host: "localhost"))
        #expect(added.status == .exited(1))
        #expect(try daemon.tasks().last?.error?.code == .protocolNotAllowed)
        #expect(target.connectionsAccepted == 0)
        #expect(!proxy.lines.contains { $0.hasPrefix("GET ") })
    }
}
