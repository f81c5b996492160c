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
        var rival: Int? { pace.rival }
        var isEmpty: Bool { pace.isEmpty }
        func isFree(now: MonotonicTime) -> Bool { pace.isFree(now: now) }
        func setRate(_ rate: Double?) { pace.setRate(rate) }
        func look(_ id: Int, now: MonotonicTime) -> RequestPace.Step { pace.look(id, now: now) }
        func leave(_ id: Int) { pace.leave(id) }

        func enter(_ id: Int, isFurther: Bool = false, loop: Int = 0, now: MonotonicTime) -> RequestPace.Step {
            pace.enter(id, isFurther: isFurther, loop: loop, now: now)
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

    @Test("a request that gives up makes room")
    func leaving() {
        let pace = Pace(rate: 1)
        for id in 1...4 { _ = pace.enter(id, isFurther: id == 4, now: at(0)) }
        pace.leave(3)
        #expect(pace.head == 2)
        pace.leave(2)
        #expect(pace.head == 4)
        pace.leave(99)
        pace.leave(4)
        #expect(pace.isEmpty && pace.isFree(now: at(1_000)))
    }

    @Test("a loop that does not take its turn in time loses it to the next request of another loop")
    func lateLoop() {
        let pace = Pace(rate: 1)
        #expect(pace.enter(1, now: at(0)) == .send)
        #expect(pace.enter(2, loop: 1, now: at(0)) == .wait(1_000))
        #expect(pace.enter(3, loop: 1, now: at(0)) == .queue)
        #expect(pace.enter(4, loop: 2, now: at(0)) == .wait(1_100))
        #expect(pace.enter(5, loop: 2, now: at(0)) == .queue)
        #expect(pace.rival == 4)
        #expect(pace.look(4, now: at(1_099)) == .wait(1))
        #expect(pace.look(4, now: at(1_100)) == .send)
        // All of the late loop is passed over, at no further delay.
        #expect(pace.head == 5 && pace.rival == nil)
        #expect(pace.look(5, now: at(2_099)) == .wait(1))
        // The loop works again, and is where it was.
        #expect(pace.look(2, now: at(2_099)) == .wait(1))
        #expect(pace.rival == 5)
        #expect(pace.look(2, now: at(2_100)) == .send)
        #expect(pace.head == 3)
    }

    @Test("a late loop that looks has its place, but no turn before the rate allows")
    func returned() {
        let pace = Pace(rate: 1)
        _ = pace.enter(1, now: at(0))
        _ = pace.enter(2, loop: 1, now: at(0))
        _ = pace.enter(3, loop: 2, now: at(0))
        #expect(pace.look(3, now: at(1_100)) == .send)
        #expect(pace.head == nil, "nobody is there")
        #expect(pace.look(2, now: at(1_101)) == .wait(999))
        #expect(pace.look(2, now: at(2_100)) == .send && pace.isEmpty)
    }

    @Test("a new request goes before those of a loop that is away, and one of that loop shows that it is back")
    func newRequests() {
        let pace = Pace(rate: 1)
        _ = pace.enter(1, now: at(0))
        _ = pace.enter(2, loop: 1, now: at(0))
        _ = pace.enter(3, loop: 2, now: at(0))
        #expect(pace.look(3, now: at(1_100)) == .send)
        #expect(pace.enter(4, loop: 2, now: at(1_200)) == .wait(900))
        #expect(pace.enter(5, isFurther: true, loop: 1, now: at(1_300)) == .queue)
        #expect(pace.head == 2 && pace.rival == 4)
        pace.leave(2)
        pace.leave(5)
        #expect(pace.head == 4 && pace.rival == nil)
    }

    @Test("whichever loops hang, no second has more requests than the rate, and no request is forgotten")
    func hangingLoops() {
        let pace = Pace(rate: 20)
        var random = RandomDelays()
        var sent: [UInt64] = []
        var waiting: Set<Int> = []
        var hangs: [UInt64] = [0, 0, 0]
        var (now, id) = (0 as UInt64, 0)
        while now < 60_000 {
            now += random.next() % 4
            if now < 50_000, random.next() % 32 == 0 {
                id += 1
                let loop = Int(random.next() % 3)
                if now >= hangs[loop] {
                    let step = pace.enter(id * 3 + loop, isFurther: id % 5 == 0, loop: loop, now: at(now))
                    if step == .send { sent.append(now) } else { waiting.insert(id * 3 + loop) }
                }
            }
            if random.next() % 512 == 0 { hangs[Int(random.next() % 3)] = now + random.next() % 1_000 }
            // Each loop that does not hang looks at the requests that have a timer.
            for number in [pace.head, pace.rival].compactMap({ $0 }) where now >= hangs[number % 3] {
                guard pace.look(number, now: at(now)) == .send else { continue }
                sent.append(now)
                waiting.remove(number)
            }
            // A loop that hung looks once it works again.
            for number in waiting.sorted() where now >= hangs[number % 3] && random.next() % 1_024 == 0 {
                guard pace.look(number, now: at(now)) == .send else { continue }
                sent.append(now)
                waiting.remove(number)
            }
        }
        for (earlier, later) in zip(sent, sent.dropFirst()) { #expect(later - earlier >= 50) }
        #expect(waiting.isEmpty && pace.isEmpty)
        #expect(sent.count > 600, "\(sent.count)")
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
