import Testing

@testable import Curl

@Suite("The parts of a stream")
struct StreamPartsTests {
    @Test(
        "hosts and ports that a URL can carry make a peer",
        arguments: [
            ("example.org", 25, "http://example.org:25"), ("127.0.0.1", 65535, "http://127.0.0.1:65535"),
            ("::1", 1, "http://[::1]:1"), ("[2001:db8::1]", 80, "http://[2001:db8::1]:80"),
            ("fe80::1%eth0", 80, "http://[fe80::1%25eth0]:80"),
            ("b\u{FC}cher.example", 80, "http://b\u{FC}cher.example:80"),
        ])
    func peers(_ host: String, _ port: Int, _ url: String) throws {
        #expect(try #require(StreamPeer(host: host, port: port)).url(secure: false) == url)
    }

    @Test(
        "what would end the host in a URL, or is none, makes no peer",
        arguments: [
            ("", 80), ("a", 0), ("a", 65536), ("a", -1), ("a/b", 80), ("user@a", 80), ("a?b", 80), ("a#b", 80),
            ("a b", 80),
            ("a\r\nb", 80), ("a\0", 80), ("[::1", 80), ("::1%", 80), ("::g", 80), ("a:80", 80), ("a%41", 80),
            ("[]", 80),
            (String(repeating: "a", count: 254), 80),
        ])
    func noPeers(_ host: String, _ port: Int) {
        #expect(StreamPeer(host: host, port: port) == nil)
    }

    // MARK: The queue

    @Test("the queue gives its bytes back in order, and takes no more than its limit")
    func queue() {
        let pool = BufferPool()
        var buffer = StreamBuffer(pool: pool)
        var expected: [UInt8] = []
        var got: [UInt8] = []
        var generator = SystemRandomNumberGenerator()
        for round in 0..<400 {
            let length = Int.random(in: 0...40_000, using: &generator)
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &+ round) }
            let taken = bytes.withUnsafeBytes { buffer.append($0) }
            expected += bytes[..<taken]
            #expect(buffer.count <= StreamBuffer.limit)
            let piece = buffer.front(atMost: Int.random(in: 1...50_000, using: &generator))
            got += piece
            buffer.didSend(piece.count)
        }
        while !buffer.isEmpty {
            let piece = buffer.front(atMost: 10_000)
            got += piece
            buffer.didSend(piece.count)
        }
        #expect(got == expected)
        let piece = buffer.front(atMost: 1)
        #expect(piece.isEmpty)
    }

    @Test("a frozen front comes again at the same address and length, whatever is queued behind it")
    func frozen() {
        let pool = BufferPool()
        var buffer = StreamBuffer(pool: pool)
        let bytes = [UInt8](repeating: 3, count: StreamBuffer.limit)
        _ = bytes.withUnsafeBytes { buffer.append($0) }
        buffer.didSend(100_000)
        let first = buffer.front(atMost: 1000)
        buffer.freeze(first.count)
        let taken = bytes.withUnsafeBytes { buffer.append($0) }
        #expect(taken == 0)
        let again = buffer.front(atMost: 16_384)
        #expect(again.baseAddress == first.baseAddress)
        #expect(again.count == 1000)
        buffer.didSend(1000)
        let more = bytes.withUnsafeBytes { buffer.append($0) }
        #expect(more == 101_000)
        buffer.release()
    }

    // MARK: The state machine

    @Test("a stream is finished once the peer has closed its side and we have closed ours, in either order")
    func finish() {
        var state = StreamState()
        state.connected()
        #expect(state.step == .resume)
        state.peerClosed()
        #expect(state.step == .resume)
        #expect(!state.receives && state.sends && state.acceptsWrites)
        state.closeWrite()
        #expect(!state.acceptsWrites && state.sends)
        #expect(state.step == .resume)
        state.writeClosed()
        #expect(state.step == .finish)

        state = StreamState()
        state.closeWrite()
        #expect(!state.sends)
        state.connected()
        state.writeClosed()
        #expect(state.step == .resume && state.receives)
        state.peerClosed()
        #expect(state.step == .finish)
    }

    @Test("with both sides closed by us it lingers until the peer closes")
    func linger() {
        var state = StreamState()
        state.connected()
        state.closeRead()
        #expect(!state.receives)
        state.closeWrite()
        state.writeClosed()
        #expect(state.step == .linger)
        state.beganLingering()
        #expect(state.receives && !state.sends && state.step == .resume)
        state.peerClosed()
        #expect(state.step == .finish)
        let (first, second) = (state.close(), state.close())
        #expect(first && !second)
        #expect(!state.receives && !state.sends && state.step == .resume)
    }

    @Test("nothing is read or sent during a handshake, which begins with both sides open alone")
    func upgrade() {
        var state = StreamState()
        var began = [state.beginUpgrade()]
        state.connected()
        state.pauseReading()
        began.append(state.beginUpgrade())
        #expect(!state.receives && !state.sends && state.acceptsWrites)
        began.append(state.beginUpgrade())
        state.endUpgrade()
        var resumed = [state.resumeReading()]
        #expect(state.receives)
        state.closeRead()
        began.append(state.beginUpgrade())
        resumed.append(state.resumeReading())
        #expect(began == [false, true, false, false])
        #expect(resumed == [true, false])
    }
}
