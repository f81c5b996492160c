import Curl
import Testing

@testable import Transfer

@Suite("The token bucket")
struct TokenBucketTests {
    /// A clock that stands until it is told.
    private struct Clock {
        var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
        mutating func advance(_ milliseconds: Int64) { now = now.advanced(milliseconds: milliseconds) }
    }

    @Test(
        "over a long time exactly the rate passes, whatever the size of the pieces",
        arguments: [
            (1000, 100), (10_000, 16_384), (1_000_000, 16_384), (333_333, 7), (1 << 30, 262_144), (7, 1), (1, 3),
        ] as [(Int64, Int)])
    func longRun(rate: Int64, piece: Int) {
        var clock = Clock()
        var bucket = TokenBucket(rate: rate, now: clock.now)
        let start = clock.now
        var passed: Int64 = -bucket.burst
        for _ in 0..<100_000 {
            passed += Int64(piece)
            clock.advance(bucket.take(piece, now: clock.now))
        }
        // Beyond the burst, which is for once.
        let expected = Double(rate) * Double(clock.now.milliseconds(since: start)) / 1000
        if passed > 0 { #expect(abs(Double(passed) - expected) <= max(expected * 0.01, Double(rate) * 0.001 + 1)) }
    }

    @Test("reading at odd moments adds no error")
    func noDrift() {
        var clock = Clock()
        var often = TokenBucket(rate: 999_999, now: clock.now)
        var seldom = often
        _ = often.take(50_000_000, now: clock.now)
        _ = seldom.take(50_000_000, now: clock.now)
        for step in 0..<10_000 {
            clock.now = MonotonicTime(nanoseconds: clock.now.nanoseconds + UInt64(step % 7) * 333_333 + 1)
            _ = often.take(0, now: clock.now)
        }
        #expect(often.take(0, now: clock.now) == seldom.take(0, now: clock.now))
        #expect(often == seldom)
    }

    @Test("a rest brings the burst and no more")
    func burst() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1_000_000, now: clock.now)
        #expect(bucket.burst == 250_000)
        for _ in 0..<3 {
            #expect(bucket.take(250_000, now: clock.now) == 0)
            #expect(bucket.take(1000, now: clock.now) == 1)
            clock.advance(3_600_000)
        }
        #expect(TokenBucket(rate: 1000, now: clock.now).burst == 16 * 1024)
        #expect(TokenBucket(rate: 1000, burst: 5, now: clock.now).burst == 5)
    }

    @Test("a debt is told to the millisecond, rounded up, and paid by waiting so long")
    func debt() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1000, burst: 0, now: clock.now)
        #expect(bucket.take(1, now: clock.now) == 1)
        #expect(bucket.take(999, now: clock.now) == 1000)
        clock.advance(999)
        #expect(bucket.take(0, now: clock.now) == 1)
        clock.advance(1)
        #expect(bucket.take(0, now: clock.now) == 0)
        #expect(bucket.take(3, now: clock.now) == 3)
        // Less than a millisecond is one.
        var fast = TokenBucket(rate: 1_000_000_000, burst: 0, now: clock.now)
        #expect(fast.take(1, now: clock.now) == 1)
    }

    @Test("a new rate counts from its moment on, and what is owed is paid at it")
    func changingRate() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1000, now: clock.now)
        #expect(bucket.take(16_384 + 10_000, now: clock.now) == 10_000)
        clock.advance(4000)
        bucket.setRate(6000, now: clock.now)
        #expect(bucket.take(0, now: clock.now) == 1000)
        bucket.setRate(0, now: clock.now)
        #expect(bucket.rate == 1)
        #expect(bucket.take(0, now: clock.now) == 6_000_000)
        // A smaller rate takes back what its burst does not hold.
        var full = TokenBucket(rate: 1_000_000, now: clock.now)
        full.setRate(1000, now: clock.now)
        #expect(full.take(16_384, now: clock.now) == 0)
        #expect(full.take(1, now: clock.now) == 1)
        // A larger one gives nothing for the time before it.
        full.setRate(1_000_000_000, now: clock.now)
        #expect(full.take(0, now: clock.now) == 1)
    }

    @Test("a long run with rates that change passes what the rates allow")
    func changingLongRun() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1, now: clock.now)
        var passed: Int64 = -bucket.burst
        var allowed = 0.0
        for step in 0..<200 {
            let rate = Int64(10_000 + step % 9 * 77_777)
            bucket.setRate(rate, now: clock.now)
            let start = clock.now
            while clock.now.milliseconds(since: start) < 1000 {
                let wait = bucket.take(0, now: clock.now)
                if wait > 0 {
                    clock.advance(min(wait, 1000 - clock.now.milliseconds(since: start)))
                } else {
                    passed += 5000
                    _ = bucket.take(5000, now: clock.now)
                }
            }
            allowed += Double(rate)
        }
        #expect(abs(Double(passed) - allowed) < allowed * 0.01)
    }

    @Test("no number overflows, and a clock that goes back gives nothing")
    func extremes() {
        for rate in [Int64.min, -1, 0, 1, 1 << 62, .max] {
            for burst in [Int64.min, 0, .max, nil] as [Int64?] {
                var bucket = TokenBucket(rate: rate, burst: burst, now: MonotonicTime(nanoseconds: .max))
                for bytes in [Int.max, .min, 0, .max, .max] {
                    for time in [UInt64.max, 0, 1 << 63, .max] {
                        #expect(bucket.take(bytes, now: MonotonicTime(nanoseconds: time)) >= 0)
                        bucket.setRate(rate, now: MonotonicTime(nanoseconds: time))
                    }
                }
                var fresh = TokenBucket(rate: rate, burst: burst, now: MonotonicTime(nanoseconds: 0))
                _ = fresh.take(.max, now: MonotonicTime(nanoseconds: .max))
            }
        }
        var bucket = TokenBucket(rate: 1000, burst: 0, now: MonotonicTime(nanoseconds: 5_000_000_000))
        #expect(bucket.take(1000, now: MonotonicTime(nanoseconds: 5_000_000_000)) == 1000)
        #expect(bucket.take(0, now: MonotonicTime(nanoseconds: 0)) == 1000)
        #expect(bucket.take(0, now: MonotonicTime(nanoseconds: 5_500_000_000)) == 500)
    }

    @Test("a debt of any size ends")
    func deepest() {
        var bucket = TokenBucket(rate: .max, burst: 0, now: MonotonicTime(nanoseconds: 0))
        for _ in 0..<1000 { _ = bucket.take(.max, now: MonotonicTime(nanoseconds: 0)) }
        #expect(bucket.take(0, now: MonotonicTime(nanoseconds: 1001 * 1_000_000_000)) == 0)
    }
}
