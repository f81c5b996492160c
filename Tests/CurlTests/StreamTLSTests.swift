import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite("Streams under TLS")
struct StreamTLSTests {
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

    /// Requests STARTTLS after the greeting, starts TLS after the peer's consent, and writes a line once TLS is
    /// established.
    private func talk(trusting pem: String?, timeout: Int = 20_000) -> @Sendable (StreamConnection, String) -> Void {
        let text = Mutex("")
        return { stream, event in
            switch event {
            case "received":
                let step = text.withLock { text in
                    text += "x"
                    return text.count
                }
                if step == 1 { _ = stream.write(Array("STARTTLS\r\n".utf8)) }
                if step == 2 { #expect(stream.secure(trusting: pem, timeout: timeout) == nil) }
            case "secured": _ = stream.write(Array("hello\n".utf8))
            default: break
            }
        }
    }

    @Test("TLS starts on a connection that carried plain text, and what follows travels under it")
    func startTLS() async throws {
        let echo = try await TLSEcho()
        let peer = try mailPeer(before: echo)
        let loop = try TransferLoop(name: "test-starttls")
        defer { loop.stop() }
        let log = StreamLog()
        let id = try await loop.open(port: peer.port, log: log, react: talk(trusting: echo.certificate))
        try await log.wait(for: "olleh")
        #expect(log.text == "220 hello\r\n220 go on\r\nolleh\n")
        #expect(log.events == ["connected", "secured"])
        try await eventually(that: "the peer has counted") { peer.connections >= 1 }
        #expect(await loop.with(id) { $0.isSecure } == true)
        #expect(await loop.with(id) { $0.secure(trusting: nil) } == .some(.alreadySecure))
        _ = await loop.with(id) { $0.cancel() }
        #expect(log.ending == .cancelled)
        #expect(peer.connections == 0)
    }

    @Test("8 MiB under TLS go to a slow peer and come back byte for byte, with every line backwards")
    func bulk() async throws {
        let echo = try await TLSEcho()
        let port = echo.port
        // Slower than the test writes, so that records are sent in part.
        let relay = try TalkingPeer { try $0.relay(to: port, pausing: 5000) }
        let loop = try TransferLoop(name: "test-tls-bulk")
        defer { loop.stop() }
        let log = StreamLog()
        let line = (0..<1023).map { UInt8(ascii: "A") + UInt8($0 % 26) }
        let lines = 8192
        let bytes = Array(repeatElement(line + [0x0A], count: lines).joined())
        let offset = Mutex(0)
        let id = try await loop.open(port: relay.port, secure: true, log: log, trusting: echo.certificate) {
            stream, event in
            guard event == "connected" || event == "can write" else { return }
            offset.withLock { offset in
                offset += bytes.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            }
        }
        try await eventually(that: "all of it is back", within: .seconds(60)) { log.received.count >= bytes.count }
        #expect(log.received == Array(repeatElement(line.reversed() + [0x0A], count: lines).joined()))
        #expect(log.written == bytes.count)
        #expect(await loop.with(id) { $0.isSecure } == true)
    }

    @Test("a certificate of an unknown authority ends the stream, with libcurl's words")
    func unknownAuthority() async throws {
        let echo = try await TLSEcho()
        let peer = try mailPeer(before: echo)
        let loop = try TransferLoop(name: "test-unknown")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log, react: talk(trusting: nil))
        _ = try await log.end()
        #expect(log.errorCode == 60)
        #expect(log.errorText.contains("self-signed"))
        #expect(log.events == ["connected", "ended"])
        #expect(peer.connections == 0)
    }

    @Test("a certificate for another host ends the stream")
    func otherHost() async throws {
        let echo = try await TLSEcho(names: "DNS:other.test")
        let peer = try mailPeer(before: echo)
        let loop = try TransferLoop(name: "test-other-host")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log, react: talk(trusting: echo.certificate))
        _ = try await log.end()
        #expect(log.errorCode == 60)
        #expect(log.errorText.contains("subject"))
        #expect(!log.text.contains("olleh"))
        #expect(peer.connections == 0)
    }

    @Test("TLS starts inside a proxy's tunnel, and the certificate is the peer's, not the proxy's")
    func throughProxy() async throws {
        let echo = try await TLSEcho(names: "DNS:peer.test")
        let port = echo.port
        let proxy = try TalkingPeer { socket in
            _ = try socket.readHead()
            socket.send(Array("HTTP/1.1 200 OK\r\n\r\n220 hello\r\n".utf8))
            _ = try socket.readLine()
            socket.send(Array("220 go on\r\n".utf8))
            try socket.relay(to: port)
        }
        let loop = try TransferLoop(name: "test-tls-proxy")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(
            "peer.test", port: 25, log: log, proxy: "http://127.0.0.1:\(proxy.port)",
            react: talk(trusting: echo.certificate))
        try await log.wait(for: "olleh")
        try await eventually(that: "the proxy has counted") { proxy.connections >= 1 }
    }

    // MARK: Refusals to start TLS

    @Test("TLS is not started while plain text waits in the socket, and the stream goes on")
    func unreadBytes() async throws {
        let peer = try TalkingPeer { socket in
            socket.send([1])
            _ = try socket.receive(atMost: 1)
            socket.send(Array("injected".utf8))
            try socket.echo()
        }
        let loop = try TransferLoop(name: "test-injected")
        defer { loop.stop() }
        let log = StreamLog()
        log.takesMore = false
        let id = try await loop.open(port: peer.port, log: log)
        try await eventually(that: "the first byte") { log.received.count == 1 }
        _ = await loop.with(id) { $0.write([2]) }
        try await eventually(that: "the bytes wait in the socket") {
            await loop.with(id) { $0.hasUnreadBytes() ?? false } == true
        }
        #expect(await loop.with(id) { $0.secure(trusting: nil) } == .some(.unreadBytes))
        log.takesMore = true
        _ = await loop.with(id) { $0.resumeReading() }
        try await log.wait(for: "injected")
    }

    @Test("TLS is not started before the connection stands, with bytes queued, or with a side closed")
    func notNow() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let loop = try TransferLoop(name: "test-not-now")
        defer { loop.stop() }
        let log = StreamLog()
        let early = await loop.run { core -> StartTLSRefusal? in
            guard let address = StreamPeer(host: "127.0.0.1", port: peer.port) else { return nil }
            let stream = try? core.openStream(to: address, handler: LoggingStreamHandler(log))
            defer { stream?.cancel() }
            return stream?.secure(trusting: nil)
        }
        #expect(early == .notOpen)
        let refusals = Mutex<[StartTLSRefusal?]>([])
        let other = StreamLog()
        _ = try await loop.open(port: peer.port, log: other) { stream, event in
            guard event == "connected" else { return }
            _ = stream.write([1])
            let first = stream.secure(trusting: nil)
            refusals.withLock { $0.append(first) }
        }
        try await eventually(that: "the echo") { other.received == [1] }
        let third = StreamLog()
        _ = try await loop.open(port: peer.port, log: third) { stream, event in
            guard event == "connected" else { return }
            stream.closeWrite()
            let second = stream.secure(trusting: nil)
            refusals.withLock { $0.append(second) }
        }
        #expect(try await third.end() == .finished)
        #expect(refusals.withLock { $0 } == [.unsentBytes, .notOpen])
    }

    @Test("a peer that answers the handshake with plain text ends the stream, and none of it is delivered")
    func noTLS() async throws {
        let peer = try TalkingPeer { socket in
            socket.send([1])
            _ = try socket.receive()
            socket.send(Array("250 this is no ServerHello\r\n".utf8))
            _ = try socket.readToEnd()
        }
        let loop = try TransferLoop(name: "test-no-tls")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "received" { #expect(stream.secure(trusting: nil) == nil) }
        }
        _ = try await log.end()
        #expect(log.errorCode == 35)
        #expect(log.received == [1])
        #expect(peer.connections == 0)
    }

    @Test("a handshake that is not answered ends with the time limit; cancelled, it ends at once")
    func silence() async throws {
        let peer = try TalkingPeer { socket in
            socket.send([1])
            _ = try socket.readToEnd()
        }
        let loop = try TransferLoop(name: "test-silence")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "received" { #expect(stream.secure(trusting: nil, timeout: 200) == nil) }
        }
        _ = try await log.end()
        #expect(log.errorCode == 28)
        let other = StreamLog()
        let id = try await loop.open(port: peer.port, log: other) { stream, event in
            guard event == "received" else { return }
            #expect(stream.secure(trusting: nil) == nil)
            // The byte is buffered until TLS is established.
            #expect(stream.write([5]) == 1)
            #expect(stream.secure(trusting: nil) == .notOpen)
        }
        try await eventually(that: "the byte") { other.received == [1] }
        await loop.run { _ in }
        #expect(await loop.with(id) { $0.cancel() } != nil)
        #expect(other.ending == .cancelled)
        #expect(peer.connections == 0)
    }

    @Test("a stop in the middle of a handshake leaves no descriptor")
    func stop() async throws {
        let peer = try TalkingPeer { socket in
            socket.send([1])
            _ = try socket.readToEnd()
        }
        let loop = try TransferLoop(name: "test-tls-stop")
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "received" { #expect(stream.secure(trusting: nil) == nil) }
        }
        try await eventually(that: "the byte") { log.received == [1] }
        loop.stop()
        #expect(try await log.end() == .cancelled)
        try await eventually(that: "no descriptor is left") { peer.connections == 0 }
    }

    @Test("a TLS connection that is cut without close_notify is told of, as an end or as an error")
    func truncation() async throws {
        let echo = try await TLSEcho()
        let port = echo.port
        let broken = try WakeUp(counting: true)
        let relay = try TalkingPeer { socket in
            let descriptor = socket.descriptor
            try startThread {
                broken.wait()
                shutdown(descriptor, Int32(SHUT_RDWR))
            }
            try socket.relay(to: port)
        }
        let loop = try TransferLoop(name: "test-truncated")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: relay.port, secure: true, log: log, trusting: echo.certificate) {
            stream, event in
            if event == "connected" { _ = stream.write(Array("hello\n".utf8)) }
        }
        try await log.wait(for: "olleh")
        broken.signal()
        // The library determines which of the two happens; 7.88.1 with OpenSSL reports the closed read side.
        try await eventually(that: "the stream notices") {
            log.events.contains("read closed") || log.errorCode == 56
        }
    }
}

extension StreamConnection {
    /// - Returns: the reason that TLS was not started, or `nil`.
    func secure(trusting pem: String?, timeout: Int = 20_000) -> StartTLSRefusal? {
        do throws(StartTLSRefusal) {
            try startTLS { (easy: inout EasyHandle) throws(CurlError) in
                try easy.set(.connectTimeout, to: timeout)
                if let pem { try easy.set(.caCertificates, to: pem.utf8) }
            }
            return nil
        } catch {
            return error
        }
    }
}
