import FoundationEssentials
import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Connections: versions of HTTP, proxies, rates, and so many at a host")
struct ConnectionTests {
    private let place: Place

    init() throws { place = try Place() }

    // MARK: Proxies behind TLS

    @Test("a proxy may speak TLS: trusted by the session's file or the request's own certificates, and not without")
    func secureProxy() async throws {
        let certificates = try await TestCertificates.shared
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        // nginx forwards a request with an absolute URL.
        let proxy = try await Nginx(
            [.custom("/", "proxy_pass http://$http_host$request_uri;")], tls: .init(certificate: certificates.server))
        let address = "https://localhost:\(proxy.port)"
        let text = certificates.authority.text
        let file = place.temporary.file("authority.pem")
        try place.temporary.write(text, to: "authority.pem")

        let trusting = try SessionManager(
            configuration: .test {
                $0.proxy = address
                $0.caFile = file
            })
        #expect(try await trusting.request(server.url("/f")).string == "abc")
        let manager = try SessionManager(configuration: .test { $0.proxy = address })
        var request = TransferRequest(url: server.url("/f"))
        #expect(await manager.request(request).outcome.error?.code == .tls)
        request.caCertificates = text
        #expect(try await manager.request(request).string == "abc")
        #expect(server.requests().count == 2)
    }

    // MARK: HTTP/2

    @Test("K26: HTTP/2 where it is asked for and the server agrees, and the metrics say so", arguments: [true, false])
    func http2(offered: Bool) async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: certificates.server), http2: offered)
        let resource = Resource(size: 1_000_000)
        try nginx.publish(resource, as: "f")
        let manager = try SessionManager(
            configuration: .test {
                $0.httpVersion = .http2
                // Each loop has its own connections.
                $0.loops = 1
            })
        var request = TransferRequest(url: nginx.url("/f", host: "localhost"))
        request.caCertificates = certificates.authority.text
        let download = manager.download(request, to: place.target())
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        let exchange = try #require(download.metrics.last)
        #expect(exchange.protocolName == (offered ? "h2" : "http/1.1"))
        #expect(exchange.remoteAddress == "127.0.0.1" && exchange.remotePort == nginx.port)
        let timeline = exchange.timeline
        let steps = [
            timeline.nameLookedUp, timeline.connected, timeline.secured, timeline.requestBegan, timeline.firstByte,
        ]
        let times = steps.compactMap { $0 } + [timeline.ended]
        #expect(times.count >= 5 && times == times.sorted())
        // The kept connection serves the next request.
        let again = manager.request(request)
        #expect(try await again.value.count == 1_000_000)
        #expect(again.metrics.last?.isReusedConnection == true)
        #expect(nginx.accesses().map(\.version) == Array(repeating: offered ? "HTTP/2.0" : "HTTP/1.1", count: 2))
    }

    @Test("an error of HTTP/2 itself falls back to HTTP/1.1, there and from then on")
    func fallback() async throws {
        let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
        let reset: [UInt8] = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2]
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".utf8)
        let server = try RawServer([settings + reset, answer])
        // If libcurl does not wake up for the error, the stall time-out ends the attempt.
        let manager = try SessionManager(
            configuration: .test {
                $0.httpVersion = .http2PriorKnowledge
                $0.stallTimeout = 1_000
            })
        #expect(try await manager.request(server.url()).string == "abc")
        #expect(try await manager.request(server.url()).string == "abc")
        #expect(server.requests.map { $0.hasPrefix("GET / HTTP/1.1") } == [false, true, true])
    }

    @Test("100 requests at once share few connections of HTTP/2")
    func multiplexed() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: certificates.server), http2: true)
        try nginx.publish(Resource(size: 10_000), as: "f")
        let manager = try SessionManager(configuration: .test { $0.httpVersion = .http2 })
        var request = TransferRequest(url: nginx.url("/f", host: "localhost"))
        request.caCertificates = certificates.authority.text
        try await withThrowingTaskGroup(of: Int.self) { [request] group in
            for _ in 0..<100 { group.addTask { try await manager.request(request).value.count } }
            for try await count in group { #expect(count == 10_000) }
        }
        #expect(Set(nginx.accesses().map(\.connection)).count <= 4)
    }

    @Test("a stream that is suspended for long beside another goes on over its own connection, and tells why")
    func longPause() async throws {
        let certificates = try await TestCertificates.shared
        let limited = Nginx.Location.limited("/", bytesPerSecond: 2 << 20)
        let nginx = try await Nginx([limited], tls: .init(certificate: certificates.server), http2: true)
        let resource = Resource(size: 12 << 20)
        try nginx.publish(resource, as: "f")
        let manager = try SessionManager(configuration: .test { $0.httpVersion = .http2 })
        var request = TransferRequest(url: nginx.url("/f", host: "localhost"))
        request.caCertificates = certificates.authority.text
        request.segments = .one
        let held = manager.download(request, to: place.target("held", part: ".held.part"))
        // Each loop has a connection, and there are two of them.
        let others = (0..<3).map { manager.download(request, to: place.target("\($0)", part: ".\($0).part")) }
        for download in [held] + others { download.resume() }
        try await eventually(that: "all receive") {
            ([held] + others).allSatisfy { $0.mainProgress.transferredBytes > 0 }
        }
        held.suspend()
        for other in others {
            #expect(resource.difference(fromFileAt: try await other.value.path) == nil)
            #expect(other.metrics.exchanges.map(\.departure) == [nil])
        }
        held.resume()
        #expect(resource.difference(fromFileAt: try await held.value.path) == nil)
        let reason = "left the HTTP/2 connection that others use, because of a long pause"
        #expect(held.metrics.exchanges.map(\.departure) == [reason, nil])
    }

    // MARK: Proxies

    @Test("through an HTTP proxy, plain and by CONNECT", arguments: [false, true])
    func httpProxy(secure: Bool) async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(tls: secure ? .init(certificate: certificates.server) : nil)
        let resource = Resource(size: 300_000)
        try nginx.publish(resource, as: "f")
        let proxy = try await HTTPProxy()
        let manager = try SessionManager(configuration: .test { $0.proxy = proxy.url })
        var request = TransferRequest(url: nginx.url("/f", host: "localhost"))
        request.caCertificates = certificates.authority.text
        #expect(
            resource.difference(fromFileAt: try await manager.download(request, to: place.target()).value.path) == nil)
        #expect(proxy.requests.count == 1)
        #expect(proxy.requests.first?.hasPrefix(secure ? "CONNECT" : "GET") == true)
    }

    @Test("a proxy that wants a password gets it from its URL, plain and by CONNECT, and the server never does")
    func proxyPassword() async throws {
        let nginx = try await Nginx([.echo("/echo", headers: ["authorization", "proxy_authorization"])])
        let proxy = try await HTTPProxy(user: "anna", password: "secret")
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: nginx.url("/echo"))
        request.proxy = proxy.url
        #expect(await manager.request(request).outcome.head?.status == 407)
        let missing = await manager.request(request).validate().outcome.error
        #expect(missing?.message.contains("requires a user name and password (407)") == true)
        request.proxy = proxy.url.replacing("://", with: "://anna:secret@")
        let text = try await manager.request(request).validate().string
        #expect(!text.contains("Basic"))
    }

    @Test("F76: a proxy that closes after asking for a password gets it with the next request")
    func impatientProxy() async throws {
        let proxy = try RawServer([
            Array("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n".utf8),
            Array("HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n".utf8),
            Array("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n".utf8),
        ])
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: "https://localhost:1/f")
        request.proxy = "http://anna:secret@127.0.0.1:\(proxy.port)"
        let first = await manager.request(request).outcome.error
        #expect(first?.code == .cannotConnect)
        #expect(first?.message.contains("the next attempt sends them at once") == true)
        #expect(await manager.request(request).outcome.error?.httpStatus == 503)
        let refused = await manager.request(request).outcome.error
        #expect(refused?.message.contains("rejected the user name and password (407)") == true)
        let sent = proxy.requests.map { $0.contains("Proxy-Authorization: Basic YW5uYTpzZWNyZXQ=") }
        #expect(sent == [false, true, true])
    }

    @Test(
        "a proxy that is not there is named in the place of the server",
        arguments: ["http", "socks5"], ["http", "https", "ftp"])
    func missingProxy(kind: String, scheme: String) async throws {
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: "\(scheme)://localhost:1/file")
        request.proxy = "\(kind)://127.0.0.1:2"
        let error = await manager.download(request, to: place.target()).outcome.result.error
        #expect(error?.code == .cannotConnect)
        #expect(error?.message == "the proxy 127.0.0.1:2 refuses the connection: is it up?")
    }

    @Test("a refused connection names host and port", arguments: ["http", "https", "ftp"])
    func refusedConnection(scheme: String) async throws {
        let manager = try SessionManager(configuration: .test())
        let error = await manager.download("\(scheme)://localhost:1/file", to: place.target()).outcome.result.error
        #expect(error?.code == .cannotConnect)
        #expect(error?.message == "port 1 of localhost refuses the connection: is the server up?")
        // CURLE_COULDNT_CONNECT
        #expect(error?.libcurlCode == 7 && error?.systemError == ECONNREFUSED)
    }

    @Test("TLS to a port that does not speak it suggests the URL without")
    func plainServer() async throws {
        let nginx = try await Nginx([.echo("/echo", headers: [])])
        let url = nginx.url("/echo").replacing("http://", with: "https://")
        let manager = try SessionManager(configuration: .test())
        let place = "127.0.0.1:\(nginx.port)"
        let error = await manager.request(url).outcome.error
        #expect(error?.code == .tls)
        #expect(error?.message == "the server at \(place) does not speak TLS; is it http://\(place)?")
    }

    @Test("a proxy that cannot get to the server is named beside it")
    func proxyWithoutServer() async throws {
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: "http://127.0.0.1:1/file")
        let proxy = try await SOCKSProxy()
        request.proxy = proxy.url()
        let error = await manager.request(request).outcome.error
        #expect(error?.code == .cannotConnect)
        #expect(
            error?.message.hasPrefix("the proxy 127.0.0.1:\(proxy.port) cannot connect to 127.0.0.1: ") == true)
    }

    @Test("a SOCKS proxy that wants a password, or another one, waits for a person", arguments: ["", "anna:wrong@"])
    func socksPassword(login: String) async throws {
        let proxy = try await SOCKSProxy(user: "anna", password: "secret")
        let manager = try SessionManager(configuration: .test())
        for scheme in ["http", "ftp"] {
            var request = TransferRequest(url: "\(scheme)://127.0.0.1:1/file")
            request.proxy = proxy.url().replacing("://", with: "://\(login)")
            let error = await manager.request(request).outcome.error
            #expect(error?.code == .loginRefused)
            let words = "\(login.isEmpty ? "requires a" : "rejected the") user name and password"
            #expect(error?.message.hasPrefix("the proxy 127.0.0.1:\(proxy.port) \(words)") == true)
        }
    }

    @Test("a file server behind a proxy that makes no tunnel: the proxy is told from it")
    func refusedTunnelToFileServer() async throws {
        let proxy = try await HTTPProxy(user: "anna", password: "secret")
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: "ftp://127.0.0.1:1/file")
        request.proxy = proxy.url
        let error = await manager.request(request).outcome.error
        #expect(error?.code == .httpStatus && error?.httpStatus == 407)
    }

    @Test("a proxy that challenges is answered by the delegate")
    func proxyChallenge() async throws {
        let nginx = try await Nginx([.custom("/ok", "return 200 'fine';")])
        let proxy = try await HTTPProxy(user: "anna", password: "secret")
        let manager = try SessionManager(configuration: .test { $0.proxy = proxy.url })
        manager.delegate.taskDidReceiveChallenge = { _, challenge in
            #expect(challenge.protectionSpace.isProxy && challenge.protectionSpace.port == proxy.port)
            return challenge.previousFailureCount == 0
                ? (.useCredential, Credential(user: "anna", password: "secret")) : (.rejectProtectionSpace, nil)
        }
        #expect(try await manager.request(nginx.url("/ok")).validate().string == "fine")
    }

    @Test(
        "A25: a tunnel that a proxy made for one login serves no other, and nobody without one",
        arguments: [HTTPVersion.http1, .http2], [true, false])
    func tunnelsOfLogins(version: HTTPVersion, isSessions: Bool) async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server), http2: true)
        let proxy = try await HTTPProxy(user: "anna", password: "secret")
        let own = proxy.url.replacing("://", with: "://anna:secret@")
        let manager = try SessionManager(
            configuration: .test {
                $0.httpVersion = version
                // All in one loop, so that one connection could serve every request.
                $0.loops = 1
                if isSessions { $0.proxy = own }
            })
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.caCertificates = certificates.authority.text
        if !isSessions { request.proxy = own }
        #expect(try await manager.request(request).string == "fine")
        for login in ["", "anna:wrong@", "ben:secret@"] {
            var other = request
            other.proxy = proxy.url.replacing("://", with: "://\(login)")
            let outcome = await manager.request(other).outcome
            // tinyproxy's response to a wrong login is reported as the status of the server.
            #expect(outcome.error?.httpStatus == (login.isEmpty ? 407 : 401), "\(login)")
        }
        // The tunnel still exists, and serves the request with the login.
        #expect(try await manager.request(request).string == "fine")
        // nginx writes its log after its response.
        try await eventually(that: "nginx tells of both") { nginx.accesses().count >= 2 }
        #expect(nginx.accesses().count == 2 && Set(nginx.accesses().map(\.connection)).count == 1)
    }

    @Test("through SOCKS, with names looked up here or there, and with a password", arguments: [false, true])
    func socks(resolving: Bool) async throws {
        let nginx = try await Nginx([.custom("/ok", "return 200 'fine';")])
        let proxy = try await SOCKSProxy(user: "anna", password: "secret")
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.proxy = proxy.url(resolving: resolving).replacing("://", with: "://anna:secret@")
        #expect(try await manager.request(request).validate().string == "fine")
        try await eventually(that: "the proxy says whom it connected to") { proxy.targets.count == 1 }
        #expect(proxy.targets.first?.hasSuffix(":\(nginx.port)") == true)
        request.proxy = proxy.url().replacing("://", with: "://anna:wrong@")
        #expect(await manager.request(request).outcome.error != nil)
    }

    // MARK: Rates and limits

    @Test("a session's rate and a request's hold the bytes back, in either direction", arguments: 0..<4)
    func rate(form: Int) async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer(["/f": [.serve(resource)], "/in": [.status(201)]])
        let (isOwn, isUpload) = (form & 1 == 1, form & 2 == 2)
        let manager = try SessionManager(
            configuration: .test {
                if !isOwn { ($0.downloadRate, $0.uploadRate) = (400_000, 400_000) }
            })
        var request = TransferRequest(url: server.url(isUpload ? "/in" : "/f"), method: isUpload ? .put : .get)
        if isOwn { request.maximumRate = 400_000 }
        let begin = ContinuousClock.now
        if isUpload {
            #expect(await manager.upload(.data(resource.bytes), with: request).outcome.head?.status == 201)
            #expect(server.requests().first?.body == resource.bytes)
        } else {
            #expect(
                resource.difference(fromFileAt: try await manager.download(request, to: place.target()).value.path)
                    == nil)
        }
        #expect(ContinuousClock.now - begin >= .milliseconds(950))
    }

    @Test("a rate that is raised lets those go on that wait", .timeLimit(.minutes(1)))
    func raisedRate() async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try SessionManager(configuration: .test { $0.downloadRate = 1 })
        let download = manager.download(TransferRequest(url: server.url("/f")), to: place.target()).resume()
        try await eventually(that: "bytes wait") { download.progress.isHeldBack }
        manager.session.downloadLimiter.rate = nil
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
    }

    @Test("a request's own rate may be changed while it runs", .timeLimit(.minutes(1)))
    func changedOwnRate() async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try SessionManager(configuration: .test())
        let download = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        download.limit(to: 1).resume()
        try await eventually(that: "bytes wait") { download.progress.isHeldBack }
        download.limit(to: nil)
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
    }

    @Test(
        "a host's rate holds back its own transfers alone, and may be changed while they run", .timeLimit(.minutes(1)))
    func hostRate() async throws {
        let resource = Resource(size: 400_000)
        let slow = try ScriptedServer(["/f": [.serve(resource)]])
        let other = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try SessionManager(
            configuration: .test {
                $0.hostRates = HostTable(["127.0.0.1:\(slow.port)": TransferRates(download: 1)])
            })
        let held = manager.download(TransferRequest(url: slow.url("/f")), to: place.target("held", part: ".held.part"))
            .resume()
        let free = manager.download(TransferRequest(url: other.url("/f")), to: place.target("free", part: ".free.part"))
            .resume()
        #expect(resource.difference(fromFileAt: try await free.value.path) == nil)
        try await eventually(that: "bytes wait") { held.progress.isHeldBack }
        manager.session.setHostRates(HostTable())
        #expect(resource.difference(fromFileAt: try await held.value.path) == nil)
    }

    @Test("a hundred that share a small rate come to it together", .timeLimit(.minutes(1)))
    func sharedRate() async throws {
        let resource = Resource(size: 20_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let manager = try SessionManager(configuration: .test { $0.downloadRate = 1_000_000 })
        let begin = ContinuousClock.now
        let requests = (0..<100).map { _ in manager.request(server.url("/f")).resume() }
        for request in requests { #expect(try await request.value.count == resource.size) }
        let taken = ContinuousClock.now - begin
        #expect(taken >= .milliseconds(1_900))
    }

    @Test("no more tasks are at a host at once than the session allows, and cancelled ones that wait complete")
    func hostLimit() async throws {
        let server = try ScriptedServer(["/hang": [.hang], "/f": [.status(200, body: "abc")]])
        let manager = try SessionManager(configuration: .test { $0.maximumConnectionsPerHost = 2 })
        let hanging = (0..<2).map { _ in manager.request(server.url("/hang")).resume() }
        try await eventually(that: "both hang") { server.requests().count == 2 }
        let waiting = (0..<4).map { _ in manager.request(server.url("/f")).resume() }
        waiting[0].cancel()
        #expect(await waiting[0].outcome.error?.code == .cancelled)
        #expect(server.requests().count == 2)
        hanging[0].cancel()
        for request in waiting.dropFirst() { #expect(try await request.string == "abc") }
        hanging[1].cancel()
        for request in hanging { #expect(await request.outcome.error?.code == .cancelled) }
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("A33: the environment exempts nobody from the proxy that was chosen", arguments: ["NO_PROXY", "no_proxy"])
    func noProxy(variable: String) async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let peer = try TalkingPeer { try $0.echo() }
        let proxy = try await HTTPProxy()
        setenv(variable, "*", 1)
        defer { unsetenv(variable) }
        let manager = try SessionManager(configuration: .test { $0.proxy = proxy.url })
        #expect(try await manager.request(server.url("/f")).string == "abc")
        #expect(proxy.requests.count == 1)
        let stream = manager.session.streamTask(host: "127.0.0.1", port: peer.port)
        stream.resume()
        try await stream.write([1])
        #expect(try await stream.readData().data == [1])
        #expect(proxy.requests.count == 2)
        stream.cancel()
    }

    @Test("a proxy that makes no tunnel is told from a connection that broke")
    func refusedTunnel() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server))
        let proxy = try await HTTPProxy(user: "anna", password: "secret")
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.caCertificates = certificates.authority.text
        request.proxy = proxy.url
        let error = await manager.request(request).outcome.error
        #expect(error?.code == .httpStatus && error?.httpStatus == 407)
        #expect(error?.message.contains("requires a user name and password") == true)
        request.proxy = proxy.url.replacing("://", with: "://anna:secret@")
        #expect(try await manager.request(request).string == "fine")
    }
}
