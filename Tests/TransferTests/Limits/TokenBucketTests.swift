import Curl
import Testing

@testable import Transfer

@Suite("The token bucket")
struct TokenBucketTests {
    /// A clock that advances only on request.
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
        var passed: Int64 = 0
        for _ in 0..<100_000 {
            clock.advance(bucket.consume(piece, now: clock.now).wait)
            passed += Int64(piece)
        }
        let expected = Double(rate) * Double(clock.now.milliseconds(since: start)) / 1000
        // Ten milliseconds' worth of bytes pass without a wait.
        #expect(abs(Double(passed) - expected) <= max(expected * 0.01, Double(rate) * 0.011 + 1))
    }

    @Test("nothing passes for free at the beginning: the first bytes are paid for like the others")
    func beginning() {
        let clock = Clock()
        var bucket = TokenBucket(rate: 50 * 1024, now: clock.now)
        #expect(bucket.consume(16 * 1024, now: clock.now).wait == 320)
    }

    @Test("what ten milliseconds bring passes before anyone waits, and is paid whole then")
    func slack() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1_000_000, now: clock.now)
        for _ in 0..<10 { #expect(bucket.consume(1000, now: clock.now).wait == 0) }
        #expect(bucket.consume(1000, now: clock.now).wait == 11)
        clock.advance(11)
        for _ in 0..<10 { #expect(bucket.consume(1000, now: clock.now).wait == 0) }
        #expect(bucket.consume(1000, now: clock.now).wait == 11)
    }

    @Test("those who wait pass in the order in which they came, each at its own time")
    func line() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1000, burst: 0, now: clock.now)
        let tickets = (1...5).map { _ in bucket.consume(1000, now: clock.now) }
        #expect(tickets.map(\.wait) == [1000, 2000, 3000, 4000, 5000])
        clock.advance(2500)
        #expect(tickets.map { bucket.wait(for: $0.ticket, now: clock.now) } == [0, 0, 500, 1500, 2500])
        // A new rate applies to all waiters.
        bucket.setRate(10_000, now: clock.now)
        #expect(tickets.map { bucket.wait(for: $0.ticket, now: clock.now) } == [0, 0, 50, 150, 250])
        // Returned bytes shorten the queue.
        bucket.give(back: 1000)
        #expect(bucket.wait(for: tickets[4].ticket, now: clock.now) == 150)
    }

    @Test(
        "it knows whether the rate is all that holds bytes back",
        arguments: [(100, true), (95, true), (80, false), (20, false)])
    func exhaustion(percent: Int, isExhausted: Bool) {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1_000_000, now: clock.now)
        func isHeld() -> Bool { bucket.isExhausted(now: clock.now) }
        // Initially unknown, which counts as held.
        #expect(isHeld())
        // The bytes arrive in bursts that have to wait, twice a second.
        for _ in 0..<5 {
            let wait = bucket.consume(percent * 5_000, now: clock.now).wait
            clock.advance(max(500, wait))
        }
        #expect(isHeld() == isExhausted)
        // At another rate it is unknown again.
        bucket.setRate(2_000_000, now: clock.now)
        #expect(isHeld())
        clock.advance(3_600_000)
        #expect(!isHeld())
        for _ in 0..<1_000 { clock.advance(bucket.consume(16_384, now: clock.now).wait) }
        #expect(isHeld())
    }

    @Test("a ticket of a bucket that is gone waits for nothing")
    func otherBucket() {
        let clock = Clock()
        var before = TokenBucket(rate: 10, now: clock.now)
        let ticket = before.consume(1 << 20, now: clock.now).ticket
        var bucket = TokenBucket(rate: 10, now: clock.now)
        #expect(bucket.wait(for: ticket, now: clock.now) == 0)
    }

    @Test("reading at odd moments adds no error")
    func noDrift() {
        var clock = Clock()
        var often = TokenBucket(rate: 999_999, now: clock.now)
        var seldom = often
        let ticket = often.consume(50_000_000, now: clock.now).ticket
        _ = seldom.consume(50_000_000, now: clock.now)
        for step in 0..<10_000 {
            clock.now = MonotonicTime(nanoseconds: clock.now.nanoseconds + UInt64(step % 7) * 333_333 + 1)
            _ = often.wait(for: ticket, now: clock.now)
        }
        #expect(often.consume(0, now: clock.now) == seldom.consume(0, now: clock.now))
        #expect(often.level == seldom.level)
    }

    @Test("a rest brings the burst and no more")
    func burst() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1_000_000, now: clock.now)
        #expect(bucket.burst == 100_000)
        for _ in 0..<3 {
            clock.advance(3_600_000)
            #expect(bucket.consume(110_000, now: clock.now).wait == 0)
            #expect(bucket.consume(1000, now: clock.now).wait == 11)
        }
        #expect(TokenBucket(rate: 1000, now: clock.now).burst == 16 * 1024)
        #expect(TokenBucket(rate: 1000, burst: 5, now: clock.now).burst == 5)
    }

    @Test("a debt is told to the millisecond, rounded up, and paid by waiting so long")
    func debt() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1000, burst: 0, now: clock.now)
        #expect(bucket.consume(1, now: clock.now).wait == 0)
        let (wait, ticket) = bucket.consume(999, now: clock.now)
        #expect(wait == 1000)
        clock.advance(999)
        #expect(bucket.wait(for: ticket, now: clock.now) == 1)
        clock.advance(1)
        #expect(bucket.wait(for: ticket, now: clock.now) == 0)
        #expect(bucket.consume(13, now: clock.now).wait == 13)
        // A fraction of a millisecond is rounded up.
        var fast = TokenBucket(rate: 1_000_000_000, burst: 0, now: clock.now)
        #expect(fast.consume(10_000_001, now: clock.now).wait == 11)
    }

    @Test("a new rate counts from its moment on, and what is owed is paid at it")
    func changingRate() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1000, now: clock.now)
        let (wait, ticket) = bucket.consume(10_000, now: clock.now)
        #expect(wait == 10_000)
        clock.advance(4000)
        bucket.setRate(6000, now: clock.now)
        #expect(bucket.wait(for: ticket, now: clock.now) == 1000)
        bucket.setRate(0, now: clock.now)
        #expect(bucket.rate == 1)
        #expect(bucket.wait(for: ticket, now: clock.now) == 6_000_000)
        // A smaller rate discards the credit that exceeds its burst.
        var full = TokenBucket(rate: 1_000_000, now: clock.now)
        clock.advance(1000)
        full.setRate(1000, now: clock.now)
        #expect(full.consume(16_384, now: clock.now).wait == 0)
        #expect(full.consume(11, now: clock.now).wait == 11)
    }

    @Test("a long run with rates that change passes what the rates allow")
    func changingLongRun() {
        var clock = Clock()
        var bucket = TokenBucket(rate: 1, now: clock.now)
        var passed: Int64 = 0
        var allowed = 0.0
        var turn = bucket.consume(0, now: clock.now).ticket
        for step in 0..<200 {
            let rate = Int64(10_000 + step % 9 * 77_777)
            bucket.setRate(rate, now: clock.now)
            let start = clock.now
            while clock.now.milliseconds(since: start) < 1000 {
                let wait = bucket.wait(for: turn, now: clock.now)
                if wait > 0 {
                    clock.advance(min(wait, 1000 - clock.now.milliseconds(since: start)))
                } else {
                    passed += 5000
                    turn = bucket.consume(5000, now: clock.now).ticket
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
                        let (wait, ticket) = bucket.consume(bytes, now: MonotonicTime(nanoseconds: time))
                        #expect(wait >= 0)
                        #expect(bucket.wait(for: ticket, now: MonotonicTime(nanoseconds: time)) >= 0)
                        bucket.give(back: bytes)
                        bucket.setRate(rate, now: MonotonicTime(nanoseconds: time))
                    }
                }
                var fresh = TokenBucket(rate: rate, burst: burst, now: MonotonicTime(nanoseconds: 0))
                _ = fresh.consume(.max, now: MonotonicTime(nanoseconds: .max))
            }
        }
        var bucket = TokenBucket(rate: 1000, burst: 0, now: MonotonicTime(nanoseconds: 5_000_000_000))
        let (wait, ticket) = bucket.consume(1000, now: MonotonicTime(nanoseconds: 5_000_000_000))
        #expect(wait == 1000)
        #expect(bucket.wait(for: ticket, now: MonotonicTime(nanoseconds: 0)) == 1000)
        #expect(bucket.wait(for: ticket, now: MonotonicTime(nanoseconds: 5_500_000_000)) == 500)
    }

    @Test("a debt of any size ends")
    func deepest() {
        var bucket = TokenBucket(rate: .max, burst: 0, now: MonotonicTime(nanoseconds: 0))
        for _ in 0..<1000 { _ = bucket.consume(.max, now: MonotonicTime(nanoseconds: 0)) }
        #expect(bucket.consume(0, now: MonotonicTime(nanoseconds: 1001 * 1_000_000_000)).wait == 0)
    }
}
