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
            pacer.enter("https://a.example:443", isFurther: false, now: now) {
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

    @Test("a name with and without the final dot is one host")
    func finalDot() {
        let pacer = pacer()
        #expect(pacer.enter("https://a.example:443", isFurther: false, now: now) { true } == nil)
        let other = pacer.enter("https://a.example.:443", isFurther: false, now: now) { true }
        #expect(other != nil)
        #expect(!pacer.isFree("https://a.example:443") && !pacer.isFree("https://a.example.:443"))
    }
}
