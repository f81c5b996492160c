import Curl

/// A rate limit as a value without a clock. It returns to each caller the time to wait before its bytes may pass.
///
/// Callers are served in order of arrival. Amounts are integers in bytes times nanoseconds per second, so that nothing
/// is rounded and the long-term rate is exact.
struct TokenBucket: Sendable {
    /// The minimum default burst in bytes: the size of one read.
    static let leastBurst: Int64 = 16 * 1024
    /// The milliseconds' worth of bytes that pass before a caller waits. A high rate then causes a hundred waits per
    /// second instead of one per read.
    static let slack: Int128 = 10

    /// The rate in bytes per second, at least 1.
    private(set) var rate: Int64
    /// The burst in bytes that may pass at once after an idle time.
    private(set) var burst: Int64
    private let ownBurst: Int64?
    /// The available amount in bytes times nanoseconds per second; negative for a debt.
    private(set) var level: Int128 = 0
    /// The total number of bytes taken, not reduced by bytes given back.
    private var taken: Int64 = 0
    private var updated: MonotonicTime

    private var use: LimitUse

    private static let second: Int128 = 1_000_000_000
    /// The limit of a debt. It exceeds every representable wait and is far from an integer overflow.
    private static let deepest: Int128 = -(1 << 120)

    /// A position in the queue of callers.
    struct Ticket: Sendable, Equatable {
        /// The total number of bytes taken, including the holder's.
        fileprivate var number: Int64
    }

    /// Creates an empty bucket: the first bytes wait like all others.
    ///
    /// - Parameters:
    ///   - rate: The rate in bytes per second; at least 1 is used.
    ///   - burst: The burst in bytes; `nil` for a tenth of a second's bytes, at least 16 KiB.
    init(rate: Int64, burst: Int64? = nil, now: MonotonicTime) {
        self.rate = max(1, rate)
        ownBurst = burst
        self.burst = Self.burst(of: self.rate, own: burst)
        updated = now
        use = LimitUse(since: now)
    }

    /// Takes bytes, even if they exceed the available amount.
    ///
    /// - Returns: The milliseconds until they may pass, rounded up, 0 if immediately; and the ticket for
    ///   ``wait(for:now:)``.
    mutating func consume(_ bytes: Int, now: MonotonicTime) -> (wait: Int64, ticket: Ticket) {
        refill(now)
        let count = max(0, bytes)
        level = max(Self.deepest, level - Int128(count) * Self.second)
        taken &+= Int64(count)
        let isWithinSlack = level >= -Int128(rate) * Self.slack * 1_000_000
        return (isWithinSlack ? 0 : milliseconds(toPay: level), Ticket(number: taken))
    }

    /// Returns the milliseconds until the ticket's holder may pass, rounded up; 0 if immediately.
    mutating func wait(for ticket: Ticket, now: MonotonicTime) -> Int64 {
        refill(now)
        let later = taken &- ticket.number
        // The ticket is from an earlier bucket, whose debts no longer exist.
        guard later >= 0 else { return 0 }
        return milliseconds(toPay: level + Int128(later) * Self.second)
    }

    /// Gives back bytes that were taken and do not pass.
    mutating func give(back bytes: Int) {
        level = min(Int128(burst) * Self.second, level + Int128(max(0, bytes)) * Self.second)
    }

    /// Returns whether a higher rate would be used, because nearly all permitted bytes were taken lately. Returns
    /// `true` until that is known.
    mutating func isExhausted(now: MonotonicTime) -> Bool {
        refill(now)
        return use.isFull
    }

    /// Changes the rate from now on. An existing debt remains and is paid at the new rate.
    mutating func setRate(_ rate: Int64, now: MonotonicTime) {
        refill(now)
        use = LimitUse(since: now)
        self.rate = max(1, rate)
        burst = Self.burst(of: self.rate, own: ownBurst)
        level = min(level, Int128(burst) * Self.second)
    }

    private func milliseconds(toPay debt: Int128) -> Int64 {
        guard debt < 0 else { return 0 }
        let perMillisecond = Int128(rate) * 1_000_000
        return Int64(clamping: (-debt + perMillisecond - 1) / perMillisecond)
    }

    private mutating func refill(_ now: MonotonicTime) {
        // A time before the last update adds nothing and does not reduce later refills.
        guard now > updated else { return }
        let (gain, overflow) = Int128(now.nanoseconds - updated.nanoseconds).multipliedReportingOverflow(
            by: Int128(rate))
        updated = now
        let full = Int128(burst) * Self.second
        let unused = overflow ? .max : max(0, gain - (full - level))
        level = unused > 0 ? full : level + gain
        use.record(unused: unused, rate: rate, now: now)
    }

    private static func burst(of rate: Int64, own: Int64?) -> Int64 {
        max(0, own ?? max(leastBurst, rate / 10))
    }
}

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
