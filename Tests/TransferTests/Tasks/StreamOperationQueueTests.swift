import Curl
import TestSupport
import Testing

@testable import Transfer

@Suite("What a stream has been asked for")
struct StreamOperationQueueTests {
    private func opened(limit: Int = 100) -> StreamOperationQueue {
        var queue = StreamOperationQueue(heldLimit: limit)
        queue.connected()
        return queue
    }

    private func receive(_ text: String, _ queue: inout StreamOperationQueue) {
        Array(text.utf8).withUnsafeBytes { queue.received($0) }
    }

    /// Returns the results as `number:data`, with `$` at the end of the stream, or `number!code` for a failure.
    private func outcomes(_ queue: inout StreamOperationQueue) -> [String] {
        queue.removeOutcomes().map { id, outcome in
            switch outcome {
            case .success(let piece): "\(id):\(String(decoding: piece.data, as: UTF8.self))\(piece.atEOF ? "$" : "")"
            case .failure(let error): "\(id)!\(error.code.rawValue)"
            }
        }
    }

    @Test("reads are served in their order, each with no less and no more than it asked for")
    func reads() {
        var queue = opened()
        queue.addRead(1, least: 3, most: 4, limit: nil)
        queue.addRead(2, least: 1, most: 2, limit: nil)
        queue.addRead(3, least: 1, most: 9, limit: nil)
        receive("ab", &queue)
        #expect(outcomes(&queue) == [])
        receive("cdefgh", &queue)
        #expect(outcomes(&queue) == ["1:abcd", "2:ef", "3:gh"])
        queue.addRead(4, least: 0, most: 9, limit: nil)
        #expect(outcomes(&queue) == ["4:"])
    }

    @Test("at the peer's end a read gets what is left, however little, and the next ones nothing")
    func end() {
        var queue = opened()
        receive("abc", &queue)
        queue.addRead(1, least: 5, most: 9, limit: nil)
        queue.peerClosed()
        queue.addRead(2, least: 5, most: 9, limit: nil)
        #expect(outcomes(&queue) == ["1:abc$", "2:$"])
        queue.ended(nil)
        queue.addRead(3, least: 1, most: 9, limit: nil)
        queue.addWrite(4, [1], limit: nil)
        #expect(outcomes(&queue) == ["3:$", "4!stream-closed"])
    }

    @Test("bytes that came before a failure can be read after it, and then there is the failure")
    func failure() {
        var queue = opened()
        receive("abc", &queue)
        queue.addRead(1, least: 4, most: 4, limit: nil)
        queue.ended(TransferError(.truncated, "cut"))
        queue.addRead(2, least: 1, most: 2, limit: nil)
        queue.addRead(3, least: 1, most: 2, limit: nil)
        queue.addRead(4, least: 1, most: 2, limit: nil)
        queue.addRead(5, least: 0, most: 2, limit: nil)
        #expect(outcomes(&queue) == ["1!truncated", "2:ab", "3:c", "4!truncated", "5!truncated"])
    }

    @Test("cancelled, nothing can be read any more, whatever had come")
    func cancelled() {
        var queue = opened()
        receive("abc", &queue)
        queue.peerClosed()
        queue.ended(.cancelled)
        queue.addRead(1, least: 1, most: 2, limit: nil)
        #expect(outcomes(&queue) == ["1!cancelled"])
    }

    @Test("reading stops above the limit and goes on at half of it, or where a read needs more")
    func backPressure() {
        var queue = opened(limit: 4)
        receive("abc", &queue)
        let wantsMore1 = queue.wantsMore()
        #expect(wantsMore1)
        receive("def", &queue)
        let wantsMore2 = queue.wantsMore()
        #expect(!wantsMore2)
        let work3 = queue.nextWork()
        #expect(work3?.name == nil)
        queue.addRead(1, least: 1, most: 3, limit: nil)
        let work4 = queue.nextWork()
        #expect(work4?.name == nil)
        queue.addRead(2, least: 1, most: 1, limit: nil)
        let work5 = queue.nextWork()
        #expect(work5?.name == "resume")
        let work6 = queue.nextWork()
        #expect(work6?.name == nil)
        receive("ghi", &queue)
        let wantsMore7 = queue.wantsMore()
        #expect(!wantsMore7)
        queue.addRead(3, least: 20, most: 20, limit: nil)
        let work8 = queue.nextWork()
        #expect(work8?.name == "resume")
        receive("jklmnopq", &queue)
        let wantsMore9 = queue.wantsMore()
        #expect(wantsMore9)
    }

    @Test("one write goes out after the other, and is answered when the system has all of it")
    func writes() {
        var queue = opened()
        queue.addWrite(1, [1, 2, 3], limit: nil)
        queue.addWrite(2, [], limit: nil)
        queue.addWrite(3, [4], limit: nil)
        queue.closeWrite()
        queue.addWrite(4, [5], limit: nil)
        #expect(outcomes(&queue) == ["4!stream-closed"])
        let work10 = queue.nextWork()
        #expect(work10?.name == "write 1 from 0")
        queue.accepted(2, of: 3)
        let work11 = queue.nextWork()
        #expect(work11?.name == nil)
        queue.sent(2)
        queue.hasRoom()
        let work12 = queue.nextWork()
        #expect(work12?.name == "write 1 from 2")
        queue.accepted(1, of: 1)
        let work13 = queue.nextWork()
        #expect(work13?.name == nil)
        #expect(outcomes(&queue) == [])
        queue.sent(1)
        #expect(outcomes(&queue) == ["1:"])
        let work14 = queue.nextWork()
        #expect(work14?.name == "write 3 from 0")
        #expect(outcomes(&queue) == ["2:"])
        queue.accepted(1, of: 1)
        queue.sent(1)
        let work15 = queue.nextWork()
        #expect(work15?.name == "close write")
        let work16 = queue.nextWork()
        #expect(work16?.name == nil)
    }

    @Test("TLS begins when what was asked for before it is read and written, and the rest waits for the handshake")
    func secure() {
        var queue = opened()
        queue.addRead(1, least: 2, most: 2, limit: nil)
        queue.addWrite(2, [1], limit: nil)
        queue.addBarrier(3, .secure)
        queue.addRead(4, least: 1, most: 9, limit: nil)
        queue.addWrite(5, [2], limit: nil)
        let work17 = queue.nextWork()
        #expect(work17?.name == "write 2 from 0")
        queue.accepted(1, of: 1)
        queue.sent(1)
        let work18 = queue.nextWork()
        #expect(work18?.name == nil)
        receive("ab", &queue)
        let work19 = queue.nextWork()
        #expect(work19?.name == "secure 3")
        let work20 = queue.nextWork()
        #expect(work20?.name == nil)
        queue.secured(3)
        #expect(outcomes(&queue) == ["2:", "1:ab", "3:"])
        let work21 = queue.nextWork()
        #expect(work21?.name == "write 5 from 0")
        receive("c", &queue)
        #expect(outcomes(&queue) == ["4:c"])
    }

    @Test("TLS is refused while plain text is held, and nothing that was meant for TLS goes out without")
    func refused() {
        var queue = opened()
        queue.addBarrier(1, .secure)
        queue.addWrite(2, [1], limit: nil)
        queue.addRead(3, least: 1, most: 9, limit: nil)
        receive("injected", &queue)
        let work22 = queue.nextWork()
        #expect(work22?.name == nil)
        #expect(outcomes(&queue) == ["1!tls-refused", "2!tls-refused", "3!tls-refused"])
        queue.addRead(4, least: 1, most: 9, limit: nil)
        queue.addWrite(5, [1], limit: nil)
        #expect(outcomes(&queue) == ["4:injected"])
        let work23 = queue.nextWork()
        #expect(work23?.name == "write 5 from 0")
    }

    @Test("what has not begun can be taken back, what has begun cannot")
    func withdrawal() {
        var queue = opened()
        queue.addWrite(1, [1], limit: nil)
        queue.addWrite(2, [2], limit: nil)
        queue.addRead(3, least: 1, most: 1, limit: nil)
        queue.addRead(4, least: 1, most: 1, limit: nil)
        queue.addBarrier(5, .capture)
        let work24 = queue.nextWork()
        #expect(work24?.name == "write 1 from 0")
        queue.accepted(1, of: 1)
        let withdrawal25 = queue.withdraw(1, .cancelled)
        #expect(withdrawal25 == .cannot)
        let withdrawal26 = queue.withdraw(2, .cancelled)
        #expect(withdrawal26 == .done)
        let withdrawal27 = queue.withdraw(3, .cancelled)
        #expect(withdrawal27 == .done)
        let withdrawal28 = queue.withdraw(5, .cancelled)
        #expect(withdrawal28 == .done)
        let withdrawal29 = queue.withdraw(5, .cancelled)
        #expect(withdrawal29 == .done)
        #expect(outcomes(&queue) == ["2!cancelled", "3!cancelled", "5!cancelled"])
        queue.sent(1)
        receive("a", &queue)
        #expect(outcomes(&queue) == ["1:", "4:a"])
        #expect(!queue.isCaptured)
        let work30 = queue.nextWork()
        #expect(work30?.name == nil)
    }

    @Test("a read's time runs while the stream does, and what had come by then is the next one's")
    func time() {
        func moment(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }
        var queue = opened()
        queue.addRead(1, least: 5, most: 9, limit: 100)
        #expect(!queue.isAwaited)
        let due31 = queue.startTimeouts(at: moment(1000))
        #expect(due31 == moment(1100))
        receive("ab", &queue)
        queue.suspend(moment(1060))
        let due32 = queue.startTimeouts(at: moment(5000))
        #expect(due32 == nil)
        let failure33 = queue.expire(at: moment(5000))
        #expect(failure33 == nil)
        queue.resume()
        let due34 = queue.startTimeouts(at: moment(5000))
        #expect(due34 == moment(5040))
        let failure35 = queue.expire(at: moment(5039))
        #expect(failure35 == nil)
        #expect(outcomes(&queue) == [])
        let failure36 = queue.expire(at: moment(5040))
        #expect(failure36 == nil)
        queue.addRead(2, least: 1, most: 9, limit: nil)
        #expect(outcomes(&queue) == ["1!timeout", "2:ab"])
        queue.addWrite(3, [1], limit: 10)
        _ = queue.nextWork()
        queue.accepted(1, of: 1)
        _ = queue.startTimeouts(at: moment(6000))
        let failure37 = queue.expire(at: moment(6010))
        #expect(failure37?.code == .timedOut)
        queue.addRead(4, least: 1, most: 9, limit: nil)
        #expect(queue.isAwaited)
    }

    @Test("whatever happens in whatever order, each call is answered exactly once and no byte is lost or moved")
    func disorder() {
        for seed in 1...400 {
            var generator = SeededGenerator(seed: UInt64(seed))
            func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
            var queue = StreamOperationQueue(heldLimit: 50)
            var (asked, answered) = (0, [Int]())
            var (given, taken) = (0, [UInt8]())
            var clock: UInt64 = 1_000_000
            func collect() {
                for (id, outcome) in queue.removeOutcomes() {
                    answered.append(id)
                    if case .success(let piece) = outcome { taken += piece.data }
                }
            }
            for _ in 0..<200 {
                switch Int.random(in: 0..<14, using: &generator) {
                case 0: queue.connected()
                case 1...3:
                    asked += 1
                    let least = Int.random(in: 0...9, using: &generator)
                    queue.addRead(asked, least: least, most: least + 3, limit: chance(4) ? 5 : nil)
                case 4, 5:
                    asked += 1
                    let size = Int.random(in: 0...5, using: &generator)
                    queue.addWrite(asked, [UInt8](repeating: 1, count: size), limit: chance(4) ? 5 : nil)
                case 6: if asked > 0 { _ = queue.withdraw(Int.random(in: 1...asked, using: &generator), .cancelled) }
                case 7:
                    asked += 1
                    queue.addBarrier(asked, .secure)
                case 8, 9:
                    guard queue.phase == .open else { break }
                    let bytes = (0..<Int.random(in: 1...20, using: &generator)).map {
                        UInt8(truncatingIfNeeded: given + $0)
                    }
                    given += bytes.count
                    bytes.withUnsafeBytes { queue.received($0) }
                case 10:
                    clock += 3_000_000
                    _ = queue.startTimeouts(at: MonotonicTime(nanoseconds: clock))
                    _ = queue.expire(at: MonotonicTime(nanoseconds: clock))
                case 11: if chance(2) { queue.suspend(MonotonicTime(nanoseconds: clock)) } else { queue.resume() }
                case 12: if chance(20) { queue.closeWrite() }
                default:
                    while let work = queue.nextWork() {
                        switch work {
                        case .write(_, let bytes, let offset):
                            queue.accepted(bytes.count - offset, of: bytes.count - offset)
                            queue.sent(bytes.count - offset)
                        case .secure(let id):
                            if chance(2) { queue.secured(id) } else { queue.refused(id, .cancelled) }
                        case .capture, .closeRead, .closeWrite, .resumeReading: break
                        }
                    }
                }
                collect()
            }
            if chance(2) { queue.peerClosed() }
            queue.ended(chance(2) ? nil : TransferError(.truncated, "cut"))
            collect()
            #expect(answered.sorted() == Array(1..<(asked + 1)), "seed \(seed)")
            #expect(taken == (0..<taken.count).map { UInt8(truncatingIfNeeded: $0) }, "seed \(seed)")
            #expect(taken.count + queue.heldBytes == given, "seed \(seed)")
        }
    }
}

extension StreamOperationQueue.Work {
    fileprivate var name: String {
        switch self {
        case .write(let id, _, let offset): "write \(id) from \(offset)"
        case .closeRead: "close read"
        case .closeWrite: "close write"
        case .secure(let id): "secure \(id)"
        case .capture(let id): "capture \(id)"
        case .resumeReading: "resume"
        }
    }
}
