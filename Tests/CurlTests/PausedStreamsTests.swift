import Testing

@testable import Curl

@Suite("The bound on what libcurl keeps for paused streams")
struct PausedStreamsTests {
    private let then = MonotonicTime.now()
    private let one = SocketIdentity(0)
    private let other = SocketIdentity(1)

    /// Returns the connections that are not read, and those that are read again.
    private func weigh(_ streams: inout PausedStreams, _ kept: [Int: Int64]) -> (unread: [Int32], resumed: [Int32]) {
        let resumed = streams.weigh { kept[$0] ?? 0 }
        return (streams.unread.map(\.descriptor), resumed.map(\.descriptor))
    }

    @Test("the bytes of all streams of a connection count together, and those of another connection do not")
    func sum() {
        var streams = PausedStreams()
        for id in 1...3 { streams.pause(id, on: one, at: then) }
        streams.pause(4, on: other, at: then)
        let third = PausedStreams.mostKept / 3
        #expect(weigh(&streams, [1: third, 2: third, 3: third, 4: third]) == ([], []))
        #expect(weigh(&streams, [1: third, 2: third, 3: third + 3, 4: third]) == ([0], []))
        #expect(weigh(&streams, [1: third, 2: third, 3: third + 3, 4: third]) == ([0], []), "it is stopped once")
    }

    @Test(
        "a connection is read again once half of the bytes are taken, or no stream is paused", arguments: [true, false])
    func resume(ends: Bool) {
        var streams = PausedStreams()
        streams.pause(1, on: one, at: then)
        #expect(weigh(&streams, [1: PausedStreams.mostKept + 1]) == ([0], []))
        #expect(weigh(&streams, [1: PausedStreams.fewKept + 1]) == ([0], []))
        if ends { streams.end(1) }
        #expect(weigh(&streams, [1: PausedStreams.fewKept]) == ([], [0]))
        streams.end(1)
        #expect(streams.isEmpty)
    }

    @Test("a pause is long after the patience, and a stream that stays does not count any more")
    func patience() {
        var streams = PausedStreams()
        streams.pause(1, on: one, at: then)
        #expect(streams.long(at: then.advanced(milliseconds: PausedStreams.patience - 1)).isEmpty)
        let late = then.advanced(milliseconds: PausedStreams.patience)
        #expect(streams.long(at: late).map(\.id) == [1])
        #expect(weigh(&streams, [1: PausedStreams.mostKept + 1]) == ([0], []))
        streams.stay(1)
        #expect(streams.long(at: late).isEmpty)
        #expect(weigh(&streams, [1: PausedStreams.mostKept + 1]) == ([], [0]))
        streams.end(1)
        streams.pause(1, on: one, at: late, stays: true)
        #expect(weigh(&streams, [1: PausedStreams.mostKept + 1]) == ([], []))
        // The next pause of the stream is another one.
        streams.end(1)
        streams.pause(1, on: one, at: late)
        #expect(weigh(&streams, [1: PausedStreams.mostKept + 1]) == ([0], []))
    }
}
