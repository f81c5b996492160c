import Curl
import Synchronization
import Testing

@testable import Transfer

@Suite("The pacer of requests, shared by sessions")
struct RequestPacerTests {
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    private func pacer() -> RequestPacer { RequestPacer(HostTable(["a.example": 1])) }

    @Test("a request whose loop has ended does not hold up the others")
    func endedLoop() throws {
        let pacer = pacer()
        let woken = Mutex<[String]>([])
        func enter(_ name: String, isGone: Bool = false) -> RequestPacer.Ticket? {
            pacer.enter("https://a.example:443", isFurther: false, loop: 0, now: now) {
                woken.withLock { $0.append(name) }
                return !isGone
            }?.ticket
        }
        #expect(enter("first") == nil, "it is sent at once")
        let second = try #require(enter("second"))
        let gone = try #require(enter("gone", isGone: true))
        let last = try #require(enter("last"))
        let later = MonotonicTime(nanoseconds: 2_000_000_000)
        #expect(second.look(now: later) == .send)
        #expect(woken.withLock { $0 } == ["gone", "last"])
        #expect(last.look(now: MonotonicTime(nanoseconds: 3_000_000_000)) == .send)
        withExtendedLifetime(gone) {}
    }

    @Test("the first request of another loop is woken for a turn that is not taken, and the late one once it is back")
    func lateLoop() throws {
        let pacer = pacer()
        let woken = Mutex<[String]>([])
        func enter(_ name: String, loop: Int) -> (ticket: RequestPacer.Ticket, step: RequestPace.Step)? {
            pacer.enter("https://a.example:443", isFurther: false, loop: loop, now: now) {
                woken.withLock { $0.append(name) }
                return true
            }
        }
        func at(_ milliseconds: UInt64) -> MonotonicTime {
            MonotonicTime(nanoseconds: (1_000 + milliseconds) * 1_000_000)
        }
        #expect(enter("first", loop: 1) == nil)
        let late = try #require(enter("late", loop: 1))
        let rival = try #require(enter("rival", loop: 2))
        let third = try #require(enter("third", loop: 2))
        #expect(late.step == .wait(1_000) && rival.step == .wait(1_100) && third.step == .queue)
        #expect(rival.ticket.look(now: at(1_100)) == .send)
        #expect(woken.withLock { $0 } == ["third"])
        #expect(late.ticket.look(now: at(1_200)) == .wait(900))
        #expect(woken.withLock { $0 } == ["third", "third"], "it is the rival now")
        #expect(third.ticket.look(now: at(1_200)) == .wait(1_000))
        #expect(late.ticket.look(now: at(2_100)) == .send)
        #expect(third.ticket.look(now: at(3_100)) == .send)
    }

    @Test("a name with and without the final dot is one host")
    func finalDot() {
        let pacer = pacer()
        #expect(pacer.enter("https://a.example:443", isFurther: false, loop: 0, now: now) { true } == nil)
        let other = pacer.enter("https://a.example.:443", isFurther: false, loop: 0, now: now) { true }
        #expect(other != nil)
        #expect(!pacer.isFree("https://a.example:443") && !pacer.isFree("https://a.example.:443"))
    }
}
