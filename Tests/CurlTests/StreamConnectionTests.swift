import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite("Streams of plain bytes")
struct StreamConnectionTests {
    @Test("8 MiB go there and come back, byte for byte, and both sides close in good order")
    func echo() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let loop = try TransferLoop(name: "test-echo")
        defer { loop.stop() }
        let log = StreamLog()
        let bytes = Resource(size: 8 << 20).bytes
        let pump = Pump(bytes)
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "connected" || event == "can write" { pump.push(stream) }
        }
        #expect(try await log.end() == .finished)
        #expect(log.received == bytes)
        #expect(log.written == bytes.count)
        #expect(log.events == ["connected", "read closed", "ended"])
        #expect(await loop.run { $0.streamCount } == 0)
        #expect(peer.connections == 0)
    }

    @Test("what is written before the connection stands leaves once it does")
    func earlyWrite() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let loop = try TransferLoop(name: "test-early")
        defer { loop.stop() }
        let log = StreamLog()
        await loop.run { core in
            guard let address = StreamPeer(host: "127.0.0.1", port: peer.port) else { return }
            let stream = try? core.openStream(to: address, handler: LoggingStreamHandler(log)) {
                (easy: inout EasyHandle) throws(CurlError) in try easy.set(.proxy, to: "")
            }
            #expect(stream?.write(Array("early".utf8)) == 5)
            stream?.closeWrite()
            #expect(stream?.write([1]) == 0)
        }
        #expect(try await log.end() == .finished)
        #expect(log.text == "early")
    }

    // MARK: Half-closed connections

    @Test("after the peer's FIN we still write")
    func peerClosesFirst() async throws {
        let heard = Mutex<[UInt8]>([])
        let peer = try TalkingPeer { socket in
            socket.send(Array("bye".utf8))
            socket.endWriting()
            let all = try socket.readToEnd()
            heard.withLock { $0 = all }
        }
        let loop = try TransferLoop(name: "test-fin")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            guard event == "read closed" else { return }
            #expect(stream.write(Array("still here".utf8)) == 10)
            stream.closeWrite()
        }
        #expect(try await log.end() == .finished)
        #expect(log.text == "bye")
        try await eventually(that: "the peer has it all") { heard.withLock { $0 } == Array("still here".utf8) }
    }

    @Test("after our FIN we still read")
    func weCloseFirst() async throws {
        let peer = try TalkingPeer { socket in
            let asked = try socket.readToEnd()
            socket.send(asked.reversed())
        }
        let loop = try TransferLoop(name: "test-our-fin")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            guard event == "connected" else { return }
            #expect(stream.write(Array("abc".utf8)) == 3)
            stream.closeWrite()
        }
        #expect(try await log.end() == .finished)
        #expect(log.text == "cba")
    }

    @Test("what we wrote arrives though we close both sides with unread bytes in the socket")
    func lingers() async throws {
        let heard = Mutex<[UInt8]>([])
        let bytes = Resource(size: 200_000).bytes
        let peer = try TalkingPeer { socket in
            socket.send([UInt8](repeating: 1, count: 100_000))
            usleep(50_000)
            let all = try socket.readToEnd()
            heard.withLock { $0 = all }
        }
        let loop = try TransferLoop(name: "test-linger")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            guard event == "connected" else { return }
            stream.closeRead()
            #expect(stream.write(bytes) == bytes.count)
            stream.closeWrite()
        }
        #expect(try await log.end() == .finished)
        #expect(heard.withLock { $0 } == bytes)
        #expect(log.received.isEmpty)
    }

    @Test("a peer that never closes its side is not waited for longer than the linger time")
    func lingersNotForEver() async throws {
        let peer = try TalkingPeer { socket in
            _ = try socket.readToEnd()
            sleep(20)
        }
        let loop = try TransferLoop(name: "test-lingers")
        defer { loop.stop() }
        let log = StreamLog()
        let begin = Mutex(MonotonicTime.now())
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            guard event == "connected" else { return }
            begin.withLock { $0 = .now() }
            stream.closeRead()
            stream.closeWrite()
        }
        #expect(try await log.end() == .finished)
        let took = try #require(log.endedAt).milliseconds(since: begin.withLock { $0 })
        #expect((1900...15_000).contains(took))
        #expect(peer.connections == 0)
    }

    // MARK: Misbehaving peers

    @Test("a reset ends the stream as failed, with the system's reason")
    func reset() async throws {
        let peer = try TalkingPeer { socket in
            socket.send(Array("half".utf8))
            _ = try socket.receive(atMost: 1)
            socket.resetOnClose()
        }
        let loop = try TransferLoop(name: "test-reset")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "received" { _ = stream.write([1]) }
        }
        _ = try await log.end()
        #expect(log.text == "half")
        #expect(log.errorCode == 56)
        #expect(log.systemError == ECONNRESET)
        #expect(peer.connections == 0)
    }

    @Test("writing to a connection that was reset fails, and no signal kills the process")
    func brokenPipe() async throws {
        let peer = try TalkingPeer { socket in
            _ = try socket.receive(atMost: 1)
            socket.resetOnClose()
        }
        let loop = try TransferLoop(name: "test-pipe")
        defer { loop.stop() }
        let log = StreamLog()
        let id = try await loop.open(port: peer.port, log: log) { stream, event in
            guard event == "connected" else { return }
            // Reading is closed, so that only a write detects the reset.
            stream.closeRead()
            _ = stream.write([1])
        }
        for _ in 0..<500 where log.ending == nil {
            _ = await loop.with(id) { $0.write([2]) }
            try await Task.sleep(for: .milliseconds(5))
        }
        _ = try await log.end()
        #expect(log.errorCode == 55)
    }

    @Test("a peer that never reads makes us queue so much and no more, without waking us")
    func backPressure() async throws {
        let release = try WakeUp(counting: true)
        let peer = try TalkingPeer { _ in release.wait() }
        defer { release.signal() }
        let loop = try TransferLoop(name: "test-pressure")
        defer { loop.stop() }
        let log = StreamLog()
        let chunk = [UInt8](repeating: 7, count: 1 << 20)
        let id = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "connected" || event == "can write" { _ = stream.write(chunk) }
        }
        // Waits until the socket buffers on both sides are full.
        var before = -1
        try await eventually(that: "nothing moves", every: .milliseconds(100)) {
            defer { before = log.written }
            return log.written > 0 && log.written == before
        }
        #expect(await loop.with(id) { $0.queuedBytes } == StreamBuffer.limit)
        #expect(await loop.with(id) { $0.write([1]) } == 0)
        #expect(try await wakeUps(of: "test-pressure") <= 1)
        #expect(await loop.with(id) { $0.cancel() } != nil)
        #expect(log.ending == .cancelled)
    }

    @Test("who does not take bytes gets none and is not woken, by a hang-up neither, until reading is resumed")
    func pause() async throws {
        let bytes = Resource(size: 3_000_000).bytes
        let peer = try TalkingPeer { $0.send(bytes) }
        let loop = try TransferLoop(name: "test-pausing")
        defer { loop.stop() }
        let log = StreamLog()
        log.takesMore = false
        let id = try await loop.open(port: peer.port, log: log) { stream, event in
            if event == "read closed" { stream.closeWrite() }
        }
        try await eventually(that: "the first piece") { !log.received.isEmpty }
        let first = log.received.count
        #expect(try await wakeUps(of: "test-pausing") <= 1)
        #expect(log.received.count == first)
        log.takesMore = true
        _ = await loop.with(id) { $0.resumeReading() }
        #expect(try await log.end() == .finished)
        #expect(log.received == bytes)
    }

    @Test("a stream with the peer's side closed and nothing to write wakes nobody")
    func halfOpenIdle() async throws {
        let release = try WakeUp(counting: true)
        let peer = try TalkingPeer { socket in
            socket.endWriting()
            release.wait()
        }
        defer { release.signal() }
        let loop = try TransferLoop(name: "test-half-idle")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: peer.port, log: log)
        try await log.wait(forEvent: "read closed")
        #expect(try await wakeUps(of: "test-half-idle") <= 1)
    }

    /// Returns the number of wake-ups of the named thread in 300 ms without work.
    private func wakeUps(of name: String) async throws -> Int {
        let thread = try #require(ThreadProbe(name: name))
        try await Task.sleep(for: .milliseconds(50))
        let before = try #require(thread.voluntarySwitches)
        try await Task.sleep(for: .milliseconds(300))
        return try #require(thread.voluntarySwitches) - before
    }

    // MARK: Failed connections

    @Test("a port that nobody listens on is refused, with the system's reason")
    func refused() async throws {
        let loop = try TransferLoop(name: "test-no-one")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open(port: try FreePort.next(), log: log)
        _ = try await log.end()
        #expect(log.errorCode == 7)
        #expect(log.systemError == ECONNREFUSED)
    }

    // MARK: Proxies

    @Test("a tunnel through an HTTP proxy carries the bytes, and none of the proxy's own")
    func tunnel() async throws {
        let head = Mutex<[String]>([])
        let proxy = try TalkingPeer { socket in
            let lines = try socket.readHead()
            head.withLock { $0 = lines }
            socket.send(Array("HTTP/1.1 200 here you are\r\nX: y\r\n\r\nbanner".utf8))
            try socket.echo()
        }
        let loop = try TransferLoop(name: "test-tunnel")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open("peer.test", port: 4567, log: log, proxy: "http://127.0.0.1:\(proxy.port)") {
            stream, event in
            guard event == "connected" else { return }
            _ = stream.write(Array(" and echo".utf8))
            stream.closeWrite()
        }
        #expect(try await log.end() == .finished)
        #expect(log.text == "banner and echo")
        #expect(head.withLock { $0.first } == "CONNECT peer.test:4567 HTTP/1.1")
    }

    @Test("a proxy that refuses ends the stream as failed")
    func refusingProxy() async throws {
        let proxy = try TalkingPeer { socket in
            _ = try socket.readHead()
            socket.send(Array("HTTP/1.1 403 no\r\nContent-Length: 2\r\n\r\nno".utf8))
        }
        let loop = try TransferLoop(name: "test-no-tunnel")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open("peer.test", port: 4567, log: log, proxy: "http://127.0.0.1:\(proxy.port)")
        _ = try await log.end()
        #expect(log.errorCode == 56)
        #expect(log.errorText.contains("403"))
        #expect(log.events == ["ended"])
    }

    @Test("a SOCKS5 proxy carries the bytes")
    func socks() async throws {
        let proxy = try TalkingPeer { socket in
            // RFC 1928, sections 3 to 6.
            let methods = try socket.receive(atMost: 2)
            _ = try socket.receive(atMost: Int(methods[1]))
            socket.send([5, 0])
            _ = try socket.receive(atMost: 5 + 9 + 2)
            socket.send([5, 0, 0, 1, 127, 0, 0, 1, 0, 9])
            try socket.echo()
        }
        let loop = try TransferLoop(name: "test-socks")
        defer { loop.stop() }
        let log = StreamLog()
        _ = try await loop.open("peer.test", port: 4567, log: log, proxy: "socks5h://127.0.0.1:\(proxy.port)") {
            stream, event in
            guard event == "connected" else { return }
            _ = stream.write(Array("socks".utf8))
            stream.closeWrite()
        }
        #expect(try await log.end() == .finished)
        #expect(log.text == "socks")
    }

    // MARK: Released resources

    @Test("200 streams at once are opened and closed, and leave no descriptor")
    func many() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let loop = try TransferLoop(name: "test-many")
        defer { loop.stop() }
        let logs = (0..<200).map { _ in StreamLog() }
        for (number, log) in logs.enumerated() {
            _ = try await loop.open(port: peer.port, log: log) { stream, event in
                guard event == "connected" else { return }
                _ = stream.write(Array("number \(number)".utf8))
                stream.closeWrite()
            }
        }
        for (number, log) in logs.enumerated() {
            #expect(try await log.end() == .finished)
            #expect(log.text == "number \(number)")
        }
        #expect(peer.connections == 0)
        #expect(await loop.run { $0.streamCount } == 0)
    }

    @Test("a stop ends open streams as cancelled and leaves no descriptor")
    func stop() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let loop = try TransferLoop(name: "test-stop-open")
        let logs = (0..<5).map { _ in StreamLog() }
        for log in logs { _ = try await loop.open(port: peer.port, log: log) }
        for log in logs { try await log.wait(forEvent: "connected") }
        try await eventually(that: "the peer has counted") { peer.connections >= 5 }
        loop.stop()
        for log in logs { #expect(try await log.end() == .cancelled) }
        try await eventually(that: "no descriptor is left") { peer.connections == 0 }
    }

    @Test("a stream is cancelled while it connects, and while it is open, from within its own calls")
    func cancel() async throws {
        let peer = try TalkingPeer { try $0.echo() }
        let loop = try TransferLoop(name: "test-cancel")
        defer { loop.stop() }
        let early = StreamLog()
        await loop.run { core in
            guard let address = StreamPeer(host: "127.0.0.1", port: peer.port) else { return }
            let stream = try? core.openStream(to: address, handler: LoggingStreamHandler(early)) {
                (easy: inout EasyHandle) throws(CurlError) in try easy.set(.proxy, to: "")
            }
            stream?.cancel()
            // All these calls have no effect.
            stream?.cancel()
            stream?.closeWrite()
            stream?.closeRead()
            stream?.resumeReading()
            #expect(stream?.write([1]) == 0)
        }
        #expect(early.ending == .cancelled)
        #expect(early.events == ["ended"])
        for point in ["connected", "received", "read closed", "can write"] {
            let log = StreamLog()
            _ = try await loop.open(port: peer.port, log: log) { stream, event in
                if event == point { return stream.cancel() }
                if event == "connected" {
                    _ = stream.write([UInt8](repeating: 1, count: point == "can write" ? 1 << 20 : 10))
                    stream.closeWrite(if: point == "read closed")
                }
            }
            #expect(try await log.end() == .cancelled)
        }
        await loop.run { _ in }
        #expect(peer.connections == 0)
    }
}

extension StreamConnection {
    fileprivate func closeWrite(if condition: Bool) {
        if condition { closeWrite() }
    }
}
