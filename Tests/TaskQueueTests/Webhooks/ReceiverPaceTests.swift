import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("The pace of a receiver")
struct ReceiverPaceTests {
    private var pace = ReceiverPace(policy: RetryPolicy())

    private mutating func send(
        _ sequence: Int64, _ outcome: WebhookOutcome, now: Int64
    ) -> ReceiverPace.Change {
        pace.begin(sequence)
        return end(sequence, outcome, now: now)
    }

    private mutating func end(_ sequence: Int64, _ outcome: WebhookOutcome, now: Int64) -> ReceiverPace.Change {
        var generator = ConstantGenerator.largest
        return pace.ended(sequence, outcome, now: now, time: now &+ 5_000, using: &generator)
    }

    @Test("a receiver that works is sent what there is, whatever it thinks of single events")
    mutating func open() {
        #expect(pace.permit(at: 0) == .any)
        #expect(send(1, .accepted, now: 0) == .none)
        #expect(send(2, .refused("server replied 404"), now: 0) == .none)
        #expect(pace.permit(at: 0) == .any && pace.trouble == nil && pace.restsUntil == nil)
    }

    @Test("after a failure one message at a time probes the receiver, and an acceptance ends this")
    mutating func probes() throws {
        #expect(send(1, .failed("no connection"), now: 100) == .stopped)
        #expect(pace.trouble == .init(since: 5_100, message: "no connection", failures: 1))
        let until = try #require(pace.restsUntil)
        #expect((101...1_100).contains(until))
        #expect(pace.permit(at: until - 1) == nil)
        #expect(pace.permit(at: until) == .probe)
        pace.begin(2)
        #expect(pace.isProbe(2) && !pace.isProbe(1))
        #expect(pace.permit(at: until + 1_000_000) == nil, "one at a time")
        #expect(pace.trouble != nil && pace.restsUntil == nil)
        #expect(end(2, .accepted, now: until + 5) == .restored)
        #expect(pace.permit(at: until + 5) == .any && pace.trouble == nil)
    }

    @Test("a receiver that refuses the event of a probe works again")
    mutating func refusedProbe() throws {
        _ = send(1, .failed("no connection"), now: 0)
        #expect(send(2, .refused("server replied 422"), now: 2_000) == .restored)
        #expect(pace.permit(at: 2_000) == .any)
    }

    @Test("the time between two probes doubles, up to ten minutes")
    mutating func growth() throws {
        var now: Int64 = 0
        var longest: [Int64] = []
        for number in 1...40 as ClosedRange<Int64> {
            #expect(send(number, .failed("\(number)"), now: now) == (number == 1 ? .stopped : .none))
            let until = try #require(pace.restsUntil)
            longest.append(until - now)
            now = until
        }
        #expect(Array(longest.prefix(11)) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600].map { $0 * 1_000 })
        #expect(longest.max() == 600_000)
        #expect(pace.trouble == .init(since: 5_000, message: "40", failures: 40))
        _ = send(50, .accepted, now: now)
        _ = send(51, .failed("again"), now: now)
        #expect(pace.restsUntil == now + 1_000, "a success begins anew")
    }

    @Test("the jitter reaches down to a millisecond")
    mutating func jitter() {
        var generator = ConstantGenerator.smallest
        pace.begin(1)
        _ = pace.ended(1, .failed("x"), now: 7, time: 7, using: &generator)
        #expect(pace.permit(at: 7) == nil && pace.permit(at: 8) == .probe)
    }

    @Test("Retry-After is kept to, with jitter on top")
    mutating func retryAfter() {
        _ = send(1, .failed("server replied 429", retryAfter: 120), now: 0)
        #expect(pace.restsUntil == 121_000)
        _ = send(2, .failed("server replied 503", retryAfter: .max), now: 121_000)
        #expect(pace.restsUntil == 121_000 + RetryPolicy.longestHold + 2_000)
    }

    @Test("messages that were under way at the failure neither count again nor end the rest, but may prolong it")
    mutating func late() {
        for number in 1...4 as ClosedRange<Int64> { pace.begin(number) }
        #expect(end(1, .failed("a"), now: 0) == .stopped)
        #expect(end(2, .failed("b"), now: 1) == .none)
        #expect(end(3, .accepted, now: 2) == .none)
        #expect(pace.restsUntil == 1_000 && pace.trouble?.message == "a")
        #expect(end(4, .failed("c", retryAfter: 60), now: 3) == .none)
        #expect(pace.restsUntil == 61_003)
        pace.begin(5)
        #expect(end(9, .accepted, now: 61_003) == .none)
        #expect(end(9, .failed("d"), now: 61_003) == .none)
        #expect(pace.isProbe(5))
    }

    @Test("times at the ends of their range do not trap")
    mutating func extremes() {
        _ = send(1, .failed("a", retryAfter: .max), now: .max)
        #expect(pace.restsUntil == .max)
        #expect(pace.permit(at: .min) == nil)
    }
}
