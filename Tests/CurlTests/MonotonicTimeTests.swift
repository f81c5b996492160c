import Testing

@testable import Curl

@Suite("Monotonic time")
struct MonotonicTimeTests {
    @Test("it never goes back")
    func order() {
        var last = MonotonicTime.now()
        for _ in 0..<1000 {
            let next = MonotonicTime.now()
            #expect(next >= last)
            last = next
        }
    }

    @Test("milliseconds since round down, milliseconds until round up, and neither is negative")
    func rounding() {
        let early = MonotonicTime(nanoseconds: 1_000_000)
        let late = MonotonicTime(nanoseconds: 3_500_000)
        #expect(late.milliseconds(since: early) == 2)
        #expect(early.milliseconds(until: late) == 3)
        #expect(early.milliseconds(since: late) == 0)
        #expect(late.milliseconds(until: early) == 0)
        #expect(early.milliseconds(until: early) == 0)
    }

    @Test("advancing adds milliseconds, and nothing for a negative number")
    func advancing() {
        let time = MonotonicTime(nanoseconds: 5)
        #expect(time.advanced(milliseconds: 2).nanoseconds == 2_000_005)
        #expect(time.advanced(milliseconds: -2) == time)
    }

    @Test("a wait longer than the clock counts is the longest there is")
    func overflow() {
        let now = MonotonicTime.now()
        let never = now.advanced(milliseconds: .max)
        #expect(never > now)
        #expect(now.milliseconds(until: never) > 1_000_000_000)
        #expect(MonotonicTime(nanoseconds: 0).milliseconds(until: MonotonicTime(nanoseconds: .max)) > 1_000_000_000)
    }
}
