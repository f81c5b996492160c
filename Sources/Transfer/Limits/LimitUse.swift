import Curl

/// The utilisation of a rate limit, as a value without a clock.
struct LimitUse: Sendable {
    /// Whether nearly all of the permitted bytes were used in the last period; `true` until that is known.
    private(set) var isFull = true
    private var since: MonotonicTime
    /// The permitted but unused amount since then, in bytes times nanoseconds per second.
    private var unused: Int128 = 0

    /// The minimum length of a period in milliseconds.
    private static let watchingTime: Int64 = 1_000
    /// The reciprocal of the share that may be left unused.
    private static let tolerance: Int128 = 10

    init(since: MonotonicTime) {
        self.since = since
    }

    /// Records an unused amount.
    ///
    /// - Parameters:
    ///   - unused: The permitted but unused amount since the last call, in bytes times nanoseconds per second.
    ///   - rate: The rate limit in bytes per second.
    mutating func record(unused more: Int128, rate: Int64, now: MonotonicTime) {
        let (sum, isTooMuch) = unused.addingReportingOverflow(more)
        unused = isTooMuch ? .max : sum
        guard since.milliseconds(until: now) >= Self.watchingTime else { return }
        let (all, overflow) = Int128(now.nanoseconds - since.nanoseconds).multipliedReportingOverflow(by: Int128(rate))
        isFull = !overflow && unused < all / Self.tolerance
        (since, unused) = (now, 0)
    }
}
