import Curl

/// How much of what a rate limit would let pass is made use of, without a clock of its own.
struct LimitUse: Sendable {
    /// Whether nearly all of it was, in the last while that was looked at; `true` as long as that is not known.
    private(set) var isFull = true
    private var since: MonotonicTime
    /// What might have passed since then and was not asked for, in bytes times nanoseconds a second.
    private var unused: Int128 = 0

    /// Milliseconds over which it is judged, at least.
    private static let watchingTime: Int64 = 1_000
    /// One part in so many may be left over.
    private static let tolerance: Int128 = 10

    init(since: MonotonicTime) {
        self.since = since
    }

    /// - Parameters:
    ///   - unused: bytes times nanoseconds a second that might have passed since the last time, and were not asked for.
    ///   - rate: bytes a second.
    mutating func note(unused more: Int128, rate: Int64, now: MonotonicTime) {
        let (sum, isTooMuch) = unused.addingReportingOverflow(more)
        unused = isTooMuch ? .max : sum
        guard since.milliseconds(until: now) >= Self.watchingTime else { return }
        let (all, overflow) = Int128(now.nanoseconds - since.nanoseconds).multipliedReportingOverflow(by: Int128(rate))
        isFull = !overflow && unused < all / Self.tolerance
        (since, unused) = (now, 0)
    }
}
