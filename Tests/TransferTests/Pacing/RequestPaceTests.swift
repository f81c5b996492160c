import Curl
import Testing

@testable import Transfer

@Suite("The pace of the requests to one host")
struct RequestPaceTests {
    /// A pace whose methods can be called within an expectation.
    private final class Pace {
        private var pace: RequestPace

        init(rate: Double?) { pace = RequestPace(rate: rate) }

        var head: Int? { pace.head }
        var isEmpty: Bool { pace.isEmpty }
        func isFree(now: MonotonicTime) -> Bool { pace.isFree(now: now) }
        func setRate(_ rate: Double?) { pace.setRate(rate) }
        func look(_ id: Int, now: MonotonicTime) -> RequestPace.Step { pace.look(id, now: now) }
        func leave(_ id: Int) -> Bool { pace.leave(id) }

        func enter(_ id: Int, isFurther: Bool, now: MonotonicTime) -> RequestPace.Step {
            pace.enter(id, isFurther: isFurther, now: now)
        }
    }

    private func at(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000)
    }

    @Test("the first request is sent at once, and each further one no sooner than the rate allows")
    func spacing() {
        let pace = Pace(rate: 2)
        #expect(pace.enter(1, isFurther: false, now: at(0)) == .send)
        #expect(pace.enter(2, isFurther: false, now: at(100)) == .wait(400))
        #expect(pace.enter(3, isFurther: false, now: at(100)) == .queue)
        #expect(pace.look(2, now: at(499)) == .wait(1) && pace.look(3, now: at(499)) == .queue)
        #expect(pace.look(2, now: at(510)) == .send)
        #expect(pace.look(3, now: at(1_009)) == .wait(1) && pace.look(3, now: at(1_010)) == .send)
        #expect(!pace.isFree(now: at(1_509)) && pace.isFree(now: at(1_510)))
    }

    @Test("an idle time earns no burst")
    func burst() {
        let pace = Pace(rate: 10)
        #expect(pace.enter(1, isFurther: false, now: at(0)) == .send)
        #expect(pace.enter(2, isFurther: false, now: at(60_000)) == .send)
        #expect(pace.enter(3, isFurther: false, now: at(60_000)) == .wait(100))
    }

    @Test("a decimal rate below one is kept")
    func slow() {
        let pace = Pace(rate: 0.5)
        #expect(pace.enter(1, isFurther: false, now: at(0)) == .send)
        #expect(pace.enter(2, isFurther: false, now: at(1)) == .wait(1_999))
    }

    @Test("further connections come after the requests without which a transfer cannot begin")
    func order() {
        let pace = Pace(rate: 1)
        #expect(pace.enter(1, isFurther: true, now: at(0)) == .send)
        #expect(pace.enter(2, isFurther: true, now: at(0)) == .wait(1_000))
        #expect(pace.enter(3, isFurther: false, now: at(0)) == .wait(1_000))
        #expect(pace.enter(4, isFurther: false, now: at(0)) == .queue)
        #expect(pace.look(2, now: at(1_000)) == .queue)
        #expect(pace.look(3, now: at(1_000)) == .send && pace.look(4, now: at(2_000)) == .send)
        #expect(pace.look(2, now: at(3_000)) == .send && pace.isEmpty)
    }

    @Test("of many requests every fourth turn is a further connection's")
    func turnOfFurther() {
        let pace = Pace(rate: 1)
        #expect(pace.enter(1, isFurther: false, now: at(0)) == .send)
        for id in 2...10 { _ = pace.enter(id, isFurther: id == 2, now: at(0)) }
        var order: [Int] = []
        var now: UInt64 = 1_000
        while let head = pace.head {
            #expect(pace.look(head, now: at(now)) == .send)
            order.append(head)
            now += 1_000
        }
        #expect(order == [3, 4, 5, 2, 6, 7, 8, 9, 10])
    }

    @Test("a request that gives up makes room, and only the next one's leaving is news to the others")
    func leaving() {
        let pace = Pace(rate: 1)
        for id in 1...4 { _ = pace.enter(id, isFurther: id == 4, now: at(0)) }
        #expect(!pace.leave(3) && pace.head == 2)
        #expect(pace.leave(2) && pace.head == 4)
        #expect(!pace.leave(99))
        #expect(pace.leave(4) && pace.isEmpty && pace.isFree(now: at(1_000)))
    }

    @Test("a changed rate applies from the last request on, and without a limit nothing waits")
    func change() {
        let pace = Pace(rate: 0.001)
        #expect(pace.enter(1, isFurther: false, now: at(0)) == .send)
        #expect(pace.enter(2, isFurther: false, now: at(0)) == .wait(1_000_000))
        pace.setRate(1)
        #expect(pace.look(2, now: at(400)) == .wait(600))
        pace.setRate(nil)
        #expect(pace.look(2, now: at(400)) == .send)
        #expect(pace.enter(3, isFurther: false, now: at(400)) == .send)
    }

    @Test(
        "no second has more requests than the rate, at any rate", arguments: [0.5, 1, 7, 20, 100, 150, 1_000, 10_000])
    func bound(rate: Double) {
        let pace = Pace(rate: rate)
        var sent: [UInt64] = []
        var (now, id) = (0 as UInt64, 0)
        var random = RandomDelays()
        while sent.count < 2_000 {
            id += 1
            var step = pace.enter(id, isFurther: false, now: MonotonicTime(nanoseconds: now))
            while case .wait(let milliseconds) = step {
                // A timer is late by up to two milliseconds.
                now += UInt64(milliseconds) * 1_000_000 + random.next() % 2_000_000
                step = pace.look(id, now: MonotonicTime(nanoseconds: now))
            }
            #expect(step == .send)
            sent.append(now)
        }
        var start = 0
        var most = 0
        for (end, time) in sent.enumerated() {
            while time - sent[start] >= 1_000_000_000 { start += 1 }
            most = max(most, end - start + 1)
        }
        #expect(Double(most) <= rate.rounded(.up), "\(most)")
        // The pace is not much slower than it may be.
        let seconds = Double(now) / 1e9
        #expect(seconds <= 2_000 / rate * 1.25 + 5, "\(seconds)")
    }

    /// Numbers that look random and are the same in each run.
    private struct RandomDelays {
        private var state: UInt64 = 88_172_645_463_325_252

        mutating func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state
        }
    }

    @Test("the slowest rate and the end of the clock are no error")
    func extremes() {
        let pace = Pace(rate: .leastNonzeroMagnitude)
        #expect(pace.enter(1, isFurther: false, now: MonotonicTime(nanoseconds: .max)) == .send)
        #expect(pace.enter(2, isFurther: false, now: MonotonicTime(nanoseconds: .max - 1)) != .send)
        for rate in [0, -1, Double.nan, .infinity] { pace.setRate(rate) }
    }
}
