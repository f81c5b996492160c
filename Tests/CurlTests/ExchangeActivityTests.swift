import Testing

@testable import Curl

struct ExchangeActivityTests {
    private static func moment(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 0).advanced(milliseconds: 1_000 + milliseconds)
    }

    private func activity(stall: Int64 = 1_000, least: Int64 = 0, head: Int64 = 0) -> ExchangeActivity {
        var activity = ExchangeActivity(now: Self.moment(0))
        activity.stallTimeout = stall
        activity.leastBytes = least
        activity.headTimeout = head
        return activity
    }

    /// Returns whether a copy of the exchange's activity counts as stalled.
    private func stalls(_ activity: ExchangeActivity, at milliseconds: Int64) -> Bool {
        var activity = activity
        return activity.isStalled(at: Self.moment(milliseconds))
    }

    @Test("an exchange without a byte stalls after its time-out, and every byte starts it anew")
    func silence() {
        var activity = activity()
        #expect(!stalls(activity, at: 999))
        #expect(stalls(activity, at: 1_000))
        activity.bodyReceived(1, at: Self.moment(1_000))
        #expect(!stalls(activity, at: 1_999))
        activity.bytesSent(at: Self.moment(1_999))
        #expect(!stalls(activity, at: 2_998))
        activity.headerLineReceived(at: Self.moment(2_998))
        activity.resumed(at: Self.moment(3_500))
        #expect(!stalls(activity, at: 4_499) && stalls(activity, at: 4_500))
    }

    @Test("received bytes do not count while the exchange has more to send to a peer that accepts nothing")
    func waitingToSend() {
        var activity = activity()
        activity.isWaitingToSend = true
        activity.bodyReceived(500, at: Self.moment(900))
        activity.headerLineReceived(at: Self.moment(900))
        #expect(stalls(activity, at: 1_000))
    }

    @Test("a body that drips stalls, one at the least pace does not")
    func dripping() {
        for (bytes, isSlow) in [(9, true), (10, false)] {
            var activity = activity(least: 100)
            activity.headCompleted()
            for tick in 1...10 { activity.bodyReceived(bytes, at: Self.moment(Int64(tick) * 100)) }
            #expect(!stalls(activity, at: 1_099))
            #expect(stalls(activity, at: 1_100) == isSlow)
        }
    }

    @Test("a pause ends the counting period")
    func pause() {
        var activity = activity(least: 100)
        activity.bodyReceived(1, at: Self.moment(0))
        activity.paused()
        activity.resumed(at: Self.moment(5_000))
        #expect(!stalls(activity, at: 5_900))
    }

    @Test("a head that takes too long stalls although its lines keep coming")
    func head() {
        var activity = activity(head: 3_000)
        for tick in 0..<6 { activity.headerLineReceived(at: Self.moment(Int64(tick) * 500)) }
        #expect(!stalls(activity, at: 2_999))
        activity.headerLineReceived(at: Self.moment(2_999))
        #expect(stalls(activity, at: 3_000))
        activity.headCompleted()
        #expect(!stalls(activity, at: 3_000))
    }

    @Test("time in which the loop was busy is excluded, but not for ever without a byte")
    func exclusion() {
        var once = activity()
        once.exclude(700)
        #expect(!stalls(once, at: 1_699) && stalls(once, at: 1_700))
        var often = activity()
        for _ in 0..<100 { often.exclude(100) }
        #expect(stalls(often, at: 4_000))
        often.bodyReceived(1, at: Self.moment(4_000))
        often.exclude(500)
        #expect(!stalls(often, at: 5_499))
    }
}
