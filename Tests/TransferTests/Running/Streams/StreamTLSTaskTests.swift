import Curl
import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Stream tasks under TLS and through proxies")
struct StreamTLSTaskTests {
    private let session: Session

    init() throws { session = try Session(configuration: .test()) }

    /// Creates a peer that sends a greeting, waits for STARTTLS and relays the connection to `echo`.
    private func mailPeer(before echo: TLSEcho) throws -> TalkingPeer {
        let port = echo.port
        return try TalkingPeer { socket in
            socket.send(Array("220 hello\r\n".utf8))
            guard try socket.readLine() == "STARTTLS\r" else { return }
            socket.send(Array("220 go on\r\n".utf8))
            try socket.relay(to: port)
        }
    }

    private func request(_ peer: TalkingPeer, trusting pem: String?, proxy: String? = nil) -> TransferRequest {
        var request = TransferRequest(url: StreamAddress.url(host: "127.0.0.1", port: peer.port))
        request.caCertificates = pem
        request.proxy = proxy
        return request
    }

    /// Exchanges the plain-text lines that a mail client exchanges before TLS.
    private func greet(_ task: StreamTask) async throws(TransferError) {
        task.resume()
        _ = try await task.readData(ofMinLength: 11, maxLength: 11)
        try await task.write(Array("STARTTLS\r\n".utf8))
        _ = try await task.readData(ofMinLength: 11, maxLength: 11)
    }

    private func error(_ work: () async throws(TransferError) -> Void) async -> TransferError? {
        do throws(TransferError) {
            try await work()
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "TLS begins after plain text, straight and through both kinds of proxies",
        arguments: ["", "socks5", "socks5h", "http"])
    func good(proxy: String) async throws {
        let echo = try await TLSEcho()
        let peer = try mailPeer(before: echo)
        let socks = proxy.hasPrefix("socks") ? try await SOCKSProxy() : nil
        let http = proxy == "http" ? try await HTTPProxy() : nil
        let task = session.streamTask(
            with: request(
                peer, trusting: echo.certificate, proxy: socks?.url(resolving: proxy == "socks5h") ?? http?.url))
        try await greet(task)
        try await task.startSecureConnection()
        try await task.write(Array("hello\n".utf8))
        let answer = try await task.readData(ofMinLength: 6)
        #expect(answer.data == Array("olleh\n".utf8))
        #expect(
            await error { () async throws(TransferError) in try await task.startSecureConnection() }?.code
                == .secureRefused)
        // After the refusal the stream is unchanged.
        try await task.write(Array("abc\n".utf8))
        #expect(try await task.readData(ofMinLength: 4).data == Array("cba\n".utf8))
        task.cancel()
        try await eventually(that: "it is complete") { task.state == .completed }
        let timeline = try #require(task.metrics.last?.timeline)
        let (connected, secured) = (try #require(timeline.connected), try #require(timeline.secured))
        #expect(connected <= secured && secured <= timeline.ended)
        if let socks { #expect(socks.targets == ["127.0.0.1:\(peer.port)"]) }
        if let http { #expect(http.requests == ["CONNECT 127.0.0.1:\(peer.port) HTTP/1.1"]) }
    }

    @Test("TLS may be the first thing on a connection, and what is asked for after it waits")
    func fromTheBeginning() async throws {
        let echo = try await TLSEcho()
        let task = session.streamTask(
            with: {
                var request = TransferRequest(url: "tcp://127.0.0.1:\(echo.port)")
                request.caCertificates = echo.certificate
                return request
            }())
        let secured = Task { await error { () async throws(TransferError) in try await task.startSecureConnection() } }
        try await eventually(that: "it waits") { task.channel.waiting == 1 }
        let written = Task {
            await error { () async throws(TransferError) in try await task.write(Array("hello\n".utf8)) }
        }
        try await eventually(that: "both wait") { task.channel.waiting == 2 }
        task.resume()
        #expect(try await task.readData(ofMinLength: 6).data == Array("olleh\n".utf8))
        #expect(await secured.value == nil)
        #expect(await written.value == nil)
        task.cancel()
    }

    @Test("a certificate of an unknown authority, or for another host, fails the task with every call")
    func untrusted() async throws {
        let echo = try await TLSEcho()
        let other = try await TLSEcho(names: "DNS:other.test")
        for (server, pem) in [(echo, nil), (other, other.certificate)] {
            let peer = try mailPeer(before: server)
            let task = session.streamTask(with: request(peer, trusting: pem))
            try await greet(task)
            let read = Task { await error { () async throws(TransferError) in _ = try await task.readData() } }
            try await eventually(that: "it waits") { task.channel.waiting == 1 }
            read.cancel()
            _ = await read.value
            async let secured = error { () async throws(TransferError) in try await task.startSecureConnection() }
            #expect(await secured?.code == .tls)
            try await eventually(that: "it is complete") { task.state == .completed }
            #expect(task.error?.code == .tls)
            #expect(await error { () async throws(TransferError) in try await task.write([1]) }?.code == .tls)
            #expect(peer.connections == 0)
        }
    }

    @Test("the session's own authorities are trusted too, in the place of the system's")
    func configured() async throws {
        let echo = try await TLSEcho()
        let directory = try TemporaryDirectory()
        let file = try directory.write(echo.certificate, to: "ca.pem")
        let session = try Session(configuration: .test { $0.caFile = file })
        let peer = try mailPeer(before: echo)
        let task = session.streamTask(with: request(peer, trusting: nil))
        try await greet(task)
        try await task.startSecureConnection()
        try await task.write(Array("hello\n".utf8))
        #expect(try await task.readData(ofMinLength: 6).data == Array("olleh\n".utf8))
        task.cancel()
    }

    @Test("TLS is refused while plain text is there that was not read, be it held or still in the socket")
    func injection() async throws {
        let go = try WakeUp(counting: true)
        let peer = try TalkingPeer { socket in
            socket.send(Array("220 go on\r\n250 injected\r\n".utf8))
            try socket.echo()
        }
        let task = session.streamTask(with: request(peer, trusting: nil))
        task.resume()
        _ = try await task.readData(ofMinLength: 11, maxLength: 11)
        try await eventually(that: "the rest is held") { task.channel.heldBytes == 14 }
        let refusal = await error { () async throws(TransferError) in try await task.startSecureConnection() }
        #expect(refusal?.code == .secureRefused)
        #expect(refusal?.message.contains("plain text") == true)
        #expect(task.state == .running)
        #expect(try await task.readData().data == Array("250 injected\r\n".utf8))
        // Bytes that wait for the handshake must not be sent in plain text.
        try await task.write([7])
        try await eventually(that: "a byte is held") { task.channel.heldBytes == 1 }
        task.suspend()
        let secure = Task { await error { () async throws(TransferError) in try await task.startSecureConnection() } }
        try await eventually(that: "it waits") { task.channel.waiting == 1 }
        let secret = Task { await error { () async throws(TransferError) in try await task.write([8]) } }
        try await eventually(that: "both wait") { task.channel.waiting == 2 }
        task.resume()
        #expect(await secure.value?.code == .secureRefused)
        #expect(await secret.value?.code == .secureRefused)
        #expect(task.bytesSent == 1)
        go.signal()
        task.cancel()
    }

    @Test("a handshake that is not answered ends with the connect timeout, whoever has no other")
    func silence() async throws {
        let session = try Session(
            configuration: .test {
                $0.connectTimeout = 300
                $0.stallTimeout = 100
            })
        let peer = try TalkingPeer { socket in
            socket.send([1])
            _ = try socket.readToEnd()
        }
        let task = session.streamTask(with: request(peer, trusting: nil))
        task.resume()
        _ = try await task.readData()
        let failure = await error { () async throws(TransferError) in try await task.startSecureConnection() }
        #expect(failure?.code == .timedOut)
        #expect(peer.connections == 0)
    }

    @Test("a proxy that refuses the tunnel fails the task, and nothing of its words is the peer's")
    func refusingProxy() async throws {
        let proxy = try TalkingPeer { socket in
            _ = try socket.readHead()
            socket.send(Array("HTTP/1.1 403 no\r\nContent-Length: 2\r\n\r\nno".utf8))
        }
        let task = session.streamTask(
            with: request(proxy, trusting: nil, proxy: "http://127.0.0.1:\(proxy.port)"))
        task.resume()
        let failure = await error { () async throws(TransferError) in _ = try await task.readData() }
        #expect(failure?.code == .cannotConnect)
        #expect(failure?.message.contains("403") == true)
        #expect(task.bytesReceived == 0)
    }

    @Test("names go to the session's resolver, the proxy's and, for socks5, the server's")
    func names() async throws {
        let proxy = try await SOCKSProxy()
        let peer = try TalkingPeer { try $0.echo() }
        let asked = Notes<String>()
        let resolver = Resolver { host in
            asked.add(host)
            return .success(["127.0.0.1"])
        }
        let session = try Session(
            configuration: .test { $0.proxy = "socks5://proxy.test:\(proxy.port)" }, delegate: SessionDelegate(),
            resolver: resolver)
        let task = session.streamTask(host: "server.test", port: peer.port)
        task.resume()
        try await task.write([1])
        #expect(try await task.readData().data == [1])
        #expect(asked.all == ["proxy.test", "server.test"])
        task.cancel()
    }
}
