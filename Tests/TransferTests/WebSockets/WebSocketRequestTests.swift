import Curl
import FoundationEssentials
import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("WebSocket requests")
struct WebSocketRequestTests {
    private let manager: SessionManager

    init() throws { manager = try SessionManager(configuration: .test()) }

    @Test("messages of all sizes come back, in fragments and with pings between them, and both sides close")
    func echo() async throws {
        let server = try WebSocketServer.echo()
        let request = manager.webSocket(server.url("/chat?a"))
        var random = WebSocketRandom(state: 1)
        let sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 262_144, 262_145, 3_000_000] + (0..<40).map { $0 * 37 }
        let sent = sizes.map { size -> WebSocketMessage in
            Bool.random(using: &random)
                ? .text(String(repeating: "x", count: size)) : .data(Data(repeating: 0xAB, count: size))
        }
        async let sending: Void = { for message in sent { try await request.send(message) } }()
        var received: [WebSocketMessage] = []
        for try await message in request.messages {
            received.append(message)
            if received.count == sent.count { break }
        }
        try await sending
        #expect(received == sent)
        try await request.ping()
        #expect(try await request.close(code: .goingAway, reason: "bye").code == .goingAway)
        let outcome = await request.outcome
        #expect(outcome.closure == WebSocketClosure(code: .goingAway, reason: "bye"))
        #expect(outcome.metrics.exchanges.count == 1 && request.response?.status == 101)
        #expect(server.request.first == "GET /chat?a HTTP/1.1")
        #expect(
            await failure { () async throws(TransferError) in try await request.send("late") }?.code == .streamClosed)
        var rest = request.messages.makeAsyncIterator()
        #expect(try await rest.next() == nil)
        #expect(manager.delegate.requestCount == 0)
        #expect(server.connections == 0)
    }

    @Test("messages in the same segment as the handshake are received, and the server's close ends the sequence")
    func early() async throws {
        let server = try WebSocketServer { socket, response in
            socket.send(response + ServerFrame.text("one") + ServerFrame.text("two") + ServerFrame.close(4001, "done"))
            _ = try socket.readFrame()
        }
        let request = manager.webSocket(server.url())
        var texts: [WebSocketMessage] = []
        for try await message in request.messages { texts.append(message) }
        #expect(texts == [.text("one"), .text("two")])
        let closure = WebSocketClosure(code: WebSocketCloseCode(rawValue: 4001), reason: "done")
        #expect(await request.outcome.closure == closure)
    }

    @Test("fields, credentials, cookies and subprotocols are sent, and the choice is known")
    func fields() async throws {
        let server = try WebSocketServer.echo(fields: ["Sec-WebSocket-Protocol: v1", "Set-Cookie: b=2"])
        let cookies = CookieStorage()
        cookies.set(try #require(Cookie(name: "a", value: "1", domain: "127.0.0.1", path: "/")))
        var wanted = TransferRequest(url: server.url())
        wanted.cookies = cookies
        wanted.headerFields[.origin] = "https://a.test"
        let request = manager.webSocket(wanted, protocols: ["v2", "v1"]).authenticate(user: "u", password: "p")
        try await request.close()
        #expect(request.subprotocol == "v1")
        for line in [
            "Host: 127.0.0.1:\(server.port)", "Origin: https://a.test", "Authorization: Basic dTpw", "Cookie: a=1",
            "Sec-WebSocket-Protocol: v2, v1", "Sec-WebSocket-Version: 13",
        ] {
            #expect(server.request.contains(line), "\(line) in \(server.request)")
        }
        #expect(cookies.cookies.contains { $0.name == "b" && $0.value == "2" })
    }

    @Test("what is not a WebSocket is refused, with the reason")
    func refused() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 10))]])
        for (url, code) in [
            ("ws://127.0.0.1:\(server.port)/f", TransferError.Code.protocolNotAllowed),
            ("ws://127.0.0.1:\(server.port)/none", .httpStatus),
            ("ws://127.0.0.1:\(try FreePort.next())/", .cannotConnect),
            ("http://127.0.0.1/", .protocolNotAllowed), ("ws://127.0.0.1/#a", .invalidRequest),
        ] {
            let request = manager.webSocket(url)
            let error = await request.outcome.error
            #expect(error?.code == code, "\(url): \(String(describing: error))")
            #expect(
                await failure { () async throws(TransferError) in try await request.ping() } == error, "\(url)")
        }
        var post = TransferRequest(url: "ws://127.0.0.1/")
        post.method = .post
        #expect(await manager.webSocket(post).outcome.error?.code == .invalidRequest)
        // Others than a WebSocket request do not take such a URL.
        #expect(await manager.request("ws://127.0.0.1/").outcome.error?.code == .protocolNotAllowed)
        #expect(await manager.stream("ws://127.0.0.1/").outcome.error?.code == .protocolNotAllowed)
    }

    @Test("a message beyond the limit closes the WebSocket with 1009")
    func tooLarge() async throws {
        let codes = Notes<[UInt8]>()
        let server = try WebSocketServer { socket, response in
            socket.send(response + ServerFrame.text("ok") + ServerFrame.text("too long"))
            while let frame = try socket.readFrame() { codes.add(frame.payload) }
        }
        let request = manager.webSocket(server.url(), maximumMessageSize: 4)
        var messages = request.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("ok"))
        let error = await failure { () async throws(TransferError) in
            var messages = request.messages.makeAsyncIterator()
            _ = try await messages.next()
        }
        #expect(error?.code == .tooLarge)
        #expect(await request.outcome.error?.code == .tooLarge)
        try await eventually(that: "the server has the Close frame") { codes.all == [[0x03, 0xF1]] }
    }

    @Test("a server that is cut off, or that resets, is a failure", arguments: [false, true])
    func cut(resets: Bool) async throws {
        let server = try WebSocketServer { socket, response in
            socket.send(response + ServerFrame.text("a") + ServerFrame.bytes(.text, isFinal: false, [1, 2]))
            _ = try socket.readFrame()
            if resets { socket.resetOnClose() }
        }
        let request = manager.webSocket(server.url())
        try await request.send("go")
        var received: [WebSocketMessage] = []
        let error = await failure { () async throws(TransferError) in
            for try await message in request.messages { received.append(message) }
        }
        // A reset may overtake what was sent before it, but nothing had to be read any more.
        #expect(received == [.text("a")] && error?.code == .truncated, "\(String(describing: error))")
        #expect(await request.outcome.error?.code == .truncated)
    }

    @Test("a reader that is slow makes the server wait, with little memory")
    func backPressure() async throws {
        let sent = Notes<Int>()
        let server = try WebSocketServer { socket, response in
            socket.send(response)
            let message = ServerFrame.bytes(.binary, [UInt8](repeating: 1, count: 100_000))
            for count in 1...400 {
                socket.send(message)
                sent.add(count)
            }
            socket.send(ServerFrame.close(1000))
            _ = try socket.readFrame()
        }
        let request = manager.webSocket(server.url())
        var messages = request.messages.makeAsyncIterator()
        #expect(try await messages.next()?.size == 100_000)
        // Until the buffers of the system are full.
        var last = -1
        try await eventually(that: "the server waits", every: .milliseconds(300)) {
            defer { last = sent.all.count }
            return sent.all.count == last
        }
        #expect(last < 400)
        var count = 1
        while let message = try await messages.next() { count += message.size == 100_000 ? 1 : 0 }
        #expect(count == 400)
    }

    @Test("a sender waits for a server that does not read; its cancellation cancels the request")
    func slowServer() async throws {
        let gate = Notes<Int>()
        let server = try WebSocketServer { socket, response in
            socket.send(response)
            while gate.all.isEmpty { usleep(10_000) }
        }
        let request = manager.webSocket(server.url())
        try await request.send("first")
        let sending = Task {
            await failure { () async throws(TransferError) in
                try await request.send(Data(count: 30_000_000))
            }
        }
        let channel = try #require(request.delegate as? WebSocketTaskDelegate).channel
        try await eventually(that: "the large message is first") { channel.waiting == 1 }
        let waiting = Task { await failure { () async throws(TransferError) in try await request.send("third") } }
        try await eventually(that: "the next one waits") { channel.waiting == 2 }
        waiting.cancel()
        #expect(await waiting.value?.code == .cancelled && !request.isCancelled)
        sending.cancel()
        #expect(await sending.value?.code == .cancelled)
        #expect(await request.outcome.error?.code == .cancelled)
        gate.add(1)
    }

    @Test("cancelling a wait for a message loses none; cancelling the request and releasing the manager end every call")
    func cancelling() async throws {
        let server = try WebSocketServer.echo()
        let request = manager.webSocket(server.url())
        let waiting = Task {
            await failure { () async throws(TransferError) in
                var messages = request.messages.makeAsyncIterator()
                _ = try await messages.next()
            }
        }
        try await request.ping()
        waiting.cancel()
        #expect(await waiting.value?.code == .cancelled)
        try await request.send("kept")
        var messages = request.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("kept"))
        request.cancel()
        #expect(
            await failure { () async throws(TransferError) in
                var messages = request.messages.makeAsyncIterator()
                _ = try await messages.next()
            }?.code == .cancelled)
        #expect(await request.outcome.error?.code == .cancelled)

        var other: SessionManager? = try SessionManager(configuration: .test())
        let second = try #require(other?.webSocket(server.url()))
        try await second.ping()
        other = nil
        let outcome = await second.outcome
        #expect(outcome.error?.code == .cancelled && outcome.error?.message.contains("released") == true)
        try await eventually(that: "the connections are closed") { server.connections == 0 }
    }

    @Test("an attempt that did not connect is followed by another; one that broke is not")
    func retry() async throws {
        let attempts = Notes<Int>()
        let server = try WebSocketServer { socket, response in
            attempts.add(1)
            if attempts.all.count == 1 { return }
            if attempts.all.count == 2 {
                socket.send("HTTP/1.1 503 Later\r\n\r\n".utf8)
                return
            }
            socket.send(response + ServerFrame.text("hello"))
        }
        let retrier = CountingRetrier(limit: 9)
        manager.retrier = retrier
        let request = manager.webSocket(server.url())
        var messages = request.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("hello"))
        #expect(await request.outcome.error?.code == .truncated)
        #expect(retrier.asked.withLock { $0.map(\.code) } == [.cannotConnect, .httpStatus])
        #expect(attempts.all.count == 3)
    }

    @Test("a server that answers no ping is stalled; one that answers may be silent")
    func stall() async throws {
        let pings = Notes<Int>()
        let server = try WebSocketServer { socket, response in
            socket.send(response)
            while let frame = try socket.readFrame() {
                guard frame.opcode == 9 else { continue }
                pings.add(1)
                if pings.all.count <= 3 { socket.send(ServerFrame.bytes(.pong, frame.payload)) }
            }
        }
        var wanted = TransferRequest(url: server.url())
        wanted.timeout = 1_000
        let request = manager.webSocket(wanted)
        let error = await failure { () async throws(TransferError) in for try await _ in request.messages {} }
        #expect(error?.code == .stalled, "\(String(describing: error))")
        #expect(pings.all.count == 4)
    }

    @Test("TLS is evaluated as for other requests, also through a proxy's tunnel")
    func tls() async throws {
        let server = try WebSocketServer.echo()
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [
                .custom(
                    "/",
                    """
                    proxy_pass http://127.0.0.1:\(server.port); proxy_http_version 1.1; \
                    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                    """)
            ], tls: .init(certificate: certificates.server))
        let proxy = try await HTTPProxy()
        let url = "wss://localhost:\(nginx.port)/"
        #expect(await manager.webSocket(url).outcome.error?.code == .tls)
        for proxyURL in [nil, "http://127.0.0.1:\(proxy.port)"] {
            var wanted = TransferRequest(url: url)
            wanted.caCertificates = certificates.authority.text
            wanted.proxy = proxyURL
            let request = manager.webSocket(wanted)
            let data = Data(repeating: 7, count: 200_000)
            try await request.send(data)
            var messages = request.messages.makeAsyncIterator()
            #expect(try await messages.next() == .data(data))
            #expect(try await request.close().code == .normal)
            #expect(await request.outcome.error == nil)
        }
    }

    @Test("a denied network is not connected to")
    func denied() async throws {
        let manager = try SessionManager(
            configuration: .test { $0.deniedNetworks = [IPNetwork(ipv4: 0x7F00_0000, prefixLength: 8)] })
        let server = try WebSocketServer.echo()
        #expect(await manager.webSocket(server.url()).outcome.error?.code == .addressNotAllowed)
        #expect(server.request.isEmpty)
    }

    @Test("a suspended request receives nothing until it goes on")
    func suspension() async throws {
        let server = try WebSocketServer.echo()
        let request = manager.webSocket(server.url())
        try await request.ping()
        request.suspend()
        async let sent: Void = request.send("a")
        var messages = request.messages.makeAsyncIterator()
        async let received = messages.next()
        try await Task.sleep(for: .milliseconds(100))
        #expect(request.delegate.isSuspended)
        request.resume()
        try await sent
        #expect(try await received == .text("a"))
        try await request.close()
    }

    @Test("codes and reasons that cannot be sent are refused, and the WebSocket goes on")
    func invalidClose() async throws {
        let server = try WebSocketServer.echo()
        let request = manager.webSocket(server.url())
        for (code, reason) in [(1005, ""), (999, ""), (5000, ""), (1000, String(repeating: "a", count: 124))] {
            let error = await failure { () async throws(TransferError) in
                try await request.close(code: WebSocketCloseCode(rawValue: UInt16(code)), reason: reason)
            }
            #expect(error?.code == .invalidRequest)
        }
        try await request.ping()
        try await request.close(reason: String(repeating: "a", count: 123))
    }
}

private func failure(_ work: () async throws(TransferError) -> Void) async -> TransferError? {
    do throws(TransferError) {
        try await work()
        return nil
    } catch {
        return error
    }
}
