import Curl
import TestSupport
import Testing

@testable import Transfer

@Suite("What a stream has been asked for")
struct StreamOperationQueueTests {
    private func opened(limit: Int = 100) -> StreamOperationQueue {
        var agenda = StreamOperationQueue(heldLimit: limit)
        agenda.connected()
        return agenda
    }

    private func receive(_ text: String, _ agenda: inout StreamOperationQueue) {
        Array(text.utf8).withUnsafeBytes { agenda.received($0) }
    }

    /// Returns the results as `number:data`, with `$` at the end of the stream, or `number!code` for a failure.
    private func answers(_ agenda: inout StreamOperationQueue) -> [String] {
        agenda.takeAnswers().map { id, outcome in
            switch outcome {
            case .success(let piece): "\(id):\(String(decoding: piece.data, as: UTF8.self))\(piece.atEOF ? "$" : "")"
            case .failure(let error): "\(id)!\(error.code.rawValue)"
            }
        }
    }

    @Test("reads are served in their order, each with no less and no more than it asked for")
    func reads() {
        var agenda = opened()
        agenda.addRead(1, least: 3, most: 4, limit: nil)
        agenda.addRead(2, least: 1, most: 2, limit: nil)
        agenda.addRead(3, least: 1, most: 9, limit: nil)
        receive("ab", &agenda)
        #expect(answers(&agenda) == [])
        receive("cdefgh", &agenda)
        #expect(answers(&agenda) == ["1:abcd", "2:ef", "3:gh"])
        agenda.addRead(4, least: 0, most: 9, limit: nil)
        #expect(answers(&agenda) == ["4:"])
    }

    @Test("at the peer's end a read gets what is left, however little, and the next ones nothing")
    func end() {
        var agenda = opened()
        receive("abc", &agenda)
        agenda.addRead(1, least: 5, most: 9, limit: nil)
        agenda.peerClosed()
        agenda.addRead(2, least: 5, most: 9, limit: nil)
        #expect(answers(&agenda) == ["1:abc$", "2:$"])
        agenda.ended(nil)
        agenda.addRead(3, least: 1, most: 9, limit: nil)
        agenda.addWrite(4, [1], limit: nil)
        #expect(answers(&agenda) == ["3:$", "4!stream-closed"])
    }

    @Test("bytes that came before a failure can be read after it, and then there is the failure")
    func failure() {
        var agenda = opened()
        receive("abc", &agenda)
        agenda.addRead(1, least: 4, most: 4, limit: nil)
        agenda.ended(TransferError(.truncated, "cut"))
        agenda.addRead(2, least: 1, most: 2, limit: nil)
        agenda.addRead(3, least: 1, most: 2, limit: nil)
        agenda.addRead(4, least: 1, most: 2, limit: nil)
        agenda.addRead(5, least: 0, most: 2, limit: nil)
        #expect(answers(&agenda) == ["1!truncated", "2:ab", "3:c", "4!truncated", "5!truncated"])
    }

    @Test("cancelled, nothing can be read any more, whatever had come")
    func cancelled() {
        var agenda = opened()
        receive("abc", &agenda)
        agenda.peerClosed()
        agenda.ended(.cancelled)
        agenda.addRead(1, least: 1, most: 2, limit: nil)
        #expect(answers(&agenda) == ["1!cancelled"])
    }

    @Test("reading stops above the limit and goes on at half of it, or where a read needs more")
    func backPressure() {
        var agenda = opened(limit: 4)
        receive("abc", &agenda)
        let wantsMore1 = agenda.wantsMore()
        #expect(wantsMore1)
        receive("def", &agenda)
        let wantsMore2 = agenda.wantsMore()
        #expect(!wantsMore2)
        let work3 = agenda.nextWork()
        #expect(work3?.name == nil)
        agenda.addRead(1, least: 1, most: 3, limit: nil)
        let work4 = agenda.nextWork()
        #expect(work4?.name == nil)
        agenda.addRead(2, least: 1, most: 1, limit: nil)
        let work5 = agenda.nextWork()
        #expect(work5?.name == "resume")
        let work6 = agenda.nextWork()
        #expect(work6?.name == nil)
        receive("ghi", &agenda)
        let wantsMore7 = agenda.wantsMore()
        #expect(!wantsMore7)
        agenda.addRead(3, least: 20, most: 20, limit: nil)
        let work8 = agenda.nextWork()
        #expect(work8?.name == "resume")
        receive("jklmnopq", &agenda)
        let wantsMore9 = agenda.wantsMore()
        #expect(wantsMore9)
    }

    @Test("one write goes out after the other, and is answered when the system has all of it")
    func writes() {
        var agenda = opened()
        agenda.addWrite(1, [1, 2, 3], limit: nil)
        agenda.addWrite(2, [], limit: nil)
        agenda.addWrite(3, [4], limit: nil)
        agenda.closeWrite()
        agenda.addWrite(4, [5], limit: nil)
        #expect(answers(&agenda) == ["4!stream-closed"])
        let work10 = agenda.nextWork()
        #expect(work10?.name == "write 1 from 0")
        agenda.handed(2, of: 3)
        let work11 = agenda.nextWork()
        #expect(work11?.name == nil)
        agenda.sent(2)
        agenda.hasRoom()
        let work12 = agenda.nextWork()
        #expect(work12?.name == "write 1 from 2")
        agenda.handed(1, of: 1)
        let work13 = agenda.nextWork()
        #expect(work13?.name == nil)
        #expect(answers(&agenda) == [])
        agenda.sent(1)
        #expect(answers(&agenda) == ["1:"])
        let work14 = agenda.nextWork()
        #expect(work14?.name == "write 3 from 0")
        #expect(answers(&agenda) == ["2:"])
        agenda.handed(1, of: 1)
        agenda.sent(1)
        let work15 = agenda.nextWork()
        #expect(work15?.name == "close write")
        let work16 = agenda.nextWork()
        #expect(work16?.name == nil)
    }

    @Test("TLS begins when what was asked for before it is read and written, and the rest waits for the handshake")
    func secure() {
        var agenda = opened()
        agenda.addRead(1, least: 2, most: 2, limit: nil)
        agenda.addWrite(2, [1], limit: nil)
        agenda.addBarrier(3, .secure)
        agenda.addRead(4, least: 1, most: 9, limit: nil)
        agenda.addWrite(5, [2], limit: nil)
        let work17 = agenda.nextWork()
        #expect(work17?.name == "write 2 from 0")
        agenda.handed(1, of: 1)
        agenda.sent(1)
        let work18 = agenda.nextWork()
        #expect(work18?.name == nil)
        receive("ab", &agenda)
        let work19 = agenda.nextWork()
        #expect(work19?.name == "secure 3")
        let work20 = agenda.nextWork()
        #expect(work20?.name == nil)
        agenda.secured(3)
        #expect(answers(&agenda) == ["2:", "1:ab", "3:"])
        let work21 = agenda.nextWork()
        #expect(work21?.name == "write 5 from 0")
        receive("c", &agenda)
        #expect(answers(&agenda) == ["4:c"])
    }

    @Test("TLS is refused while plain text is held, and nothing that was meant for TLS goes out without")
    func refused() {
        var agenda = opened()
        agenda.addBarrier(1, .secure)
        agenda.addWrite(2, [1], limit: nil)
        agenda.addRead(3, least: 1, most: 9, limit: nil)
        receive("injected", &agenda)
        let work22 = agenda.nextWork()
        #expect(work22?.name == nil)
        #expect(answers(&agenda) == ["1!tls-refused", "2!tls-refused", "3!tls-refused"])
        agenda.addRead(4, least: 1, most: 9, limit: nil)
        agenda.addWrite(5, [1], limit: nil)
        #expect(answers(&agenda) == ["4:injected"])
        let work23 = agenda.nextWork()
        #expect(work23?.name == "write 5 from 0")
    }

    @Test("what has not begun can be taken back, what has begun cannot")
    func withdrawal() {
        var agenda = opened()
        agenda.addWrite(1, [1], limit: nil)
        agenda.addWrite(2, [2], limit: nil)
        agenda.addRead(3, least: 1, most: 1, limit: nil)
        agenda.addRead(4, least: 1, most: 1, limit: nil)
        agenda.addBarrier(5, .capture)
        let work24 = agenda.nextWork()
        #expect(work24?.name == "write 1 from 0")
        agenda.handed(1, of: 1)
        let withdrawal25 = agenda.withdraw(1, .cancelled)
        #expect(withdrawal25 == .cannot)
        let withdrawal26 = agenda.withdraw(2, .cancelled)
        #expect(withdrawal26 == .done)
        let withdrawal27 = agenda.withdraw(3, .cancelled)
        #expect(withdrawal27 == .done)
        let withdrawal28 = agenda.withdraw(5, .cancelled)
        #expect(withdrawal28 == .done)
        let withdrawal29 = agenda.withdraw(5, .cancelled)
        #expect(withdrawal29 == .done)
        #expect(answers(&agenda) == ["2!cancelled", "3!cancelled", "5!cancelled"])
        agenda.sent(1)
        receive("a", &agenda)
        #expect(answers(&agenda) == ["1:", "4:a"])
        #expect(!agenda.isCaptured)
        let work30 = agenda.nextWork()
        #expect(work30?.name == nil)
    }

    @Test("a read's time runs while the stream does, and what had come by then is the next one's")
    func time() {
        func moment(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }
        var agenda = opened()
        agenda.addRead(1, least: 5, most: 9, limit: 100)
        #expect(!agenda.isAwaited)
        let due31 = agenda.arm(moment(1000))
        #expect(due31 == moment(1100))
        receive("ab", &agenda)
        agenda.suspend(moment(1060))
        let due32 = agenda.arm(moment(5000))
        #expect(due32 == nil)
        let failure33 = agenda.expire(at: moment(5000))
        #expect(failure33 == nil)
        agenda.goOn()
        let due34 = agenda.arm(moment(5000))
        #expect(due34 == moment(5040))
        let failure35 = agenda.expire(at: moment(5039))
        #expect(failure35 == nil)
        #expect(answers(&agenda) == [])
        let failure36 = agenda.expire(at: moment(5040))
        #expect(failure36 == nil)
        agenda.addRead(2, least: 1, most: 9, limit: nil)
        #expect(answers(&agenda) == ["1!timeout", "2:ab"])
        agenda.addWrite(3, [1], limit: 10)
        _ = agenda.nextWork()
        agenda.handed(1, of: 1)
        _ = agenda.arm(moment(6000))
        let failure37 = agenda.expire(at: moment(6010))
        #expect(failure37?.code == .timedOut)
        agenda.addRead(4, least: 1, most: 9, limit: nil)
        #expect(agenda.isAwaited)
    }

    @Test("whatever happens in whatever order, each call is answered exactly once and no byte is lost or moved")
    func disorder() {
        for seed in 1...400 {
            var generator = SeededGenerator(seed: UInt64(seed))
            func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
            var agenda = StreamOperationQueue(heldLimit: 50)
            var (asked, answered) = (0, [Int]())
            var (given, taken) = (0, [UInt8]())
            var clock: UInt64 = 1_000_000
            func collect() {
                for (id, outcome) in agenda.takeAnswers() {
                    answered.append(id)
                    if case .success(let piece) = outcome { taken += piece.data }
                }
            }
            for _ in 0..<200 {
                switch Int.random(in: 0..<14, using: &generator) {
                case 0: agenda.connected()
                case 1...3:
                    asked += 1
                    let least = Int.random(in: 0...9, using: &generator)
                    agenda.addRead(asked, least: least, most: least + 3, limit: chance(4) ? 5 : nil)
                case 4, 5:
                    asked += 1
                    let size = Int.random(in: 0...5, using: &generator)
                    agenda.addWrite(asked, [UInt8](repeating: 1, count: size), limit: chance(4) ? 5 : nil)
                case 6: if asked > 0 { _ = agenda.withdraw(Int.random(in: 1...asked, using: &generator), .cancelled) }
                case 7:
                    asked += 1
                    agenda.addBarrier(asked, .secure)
                case 8, 9:
                    guard agenda.phase == .open else { break }
                    let bytes = (0..<Int.random(in: 1...20, using: &generator)).map {
                        UInt8(truncatingIfNeeded: given + $0)
                    }
                    given += bytes.count
                    bytes.withUnsafeBytes { agenda.received($0) }
                case 10:
                    clock += 3_000_000
                    _ = agenda.arm(MonotonicTime(nanoseconds: clock))
                    _ = agenda.expire(at: MonotonicTime(nanoseconds: clock))
                case 11: if chance(2) { agenda.suspend(MonotonicTime(nanoseconds: clock)) } else { agenda.goOn() }
                case 12: if chance(20) { agenda.closeWrite() }
                default:
                    while let work = agenda.nextWork() {
                        switch work {
                        case .write(_, let bytes, let offset):
                            agenda.handed(bytes.count - offset, of: bytes.count - offset)
                            agenda.sent(bytes.count - offset)
                        case .secure(let id):
                            if chance(2) { agenda.secured(id) } else { agenda.refused(id, .cancelled) }
                        case .capture, .closeRead, .closeWrite, .resumeReading: break
                        }
                    }
                }
                collect()
            }
            if chance(2) { agenda.peerClosed() }
            agenda.ended(chance(2) ? nil : TransferError(.truncated, "cut"))
            collect()
            #expect(answered.sorted() == Array(1..<(asked + 1)), "seed \(seed)")
            #expect(taken == (0..<taken.count).map { UInt8(truncatingIfNeeded: $0) }, "seed \(seed)")
            #expect(taken.count + agenda.heldBytes == given, "seed \(seed)")
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
