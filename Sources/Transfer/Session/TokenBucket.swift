import Curl

/// A rate limit as a value without a clock: whoever takes bytes is told how long they have to wait before they pass.
///
/// Those who wait are served in the order in which they came. Reckoned in bytes times nanoseconds and in whole numbers,
/// so that nothing is rounded away and the rate over a long time is exact.
struct TokenBucket: Sendable {
    /// Bytes that may be made up for at least, unless told: what one read brings.
    static let leastBurst: Int64 = 16 * 1024
    /// Milliseconds of bytes that pass before anyone waits, so that a high rate costs a hundred waits a second and not
    /// one for each read.
    static let slack: Int128 = 10

    /// Bytes a second, at least 1.
    private(set) var rate: Int64
    /// Bytes that may be made up for after a rest.
    private(set) var burst: Int64
    private let ownBurst: Int64?
    /// What may be taken, in bytes times nanoseconds a second; a debt where negative.
    private(set) var level: Int128 = 0
    /// All bytes that were ever taken, without those given back.
    private var taken: Int64 = 0
    private var updated: MonotonicTime

    private var use: LimitUse

    private static let second: Int128 = 1_000_000_000
    /// Where debts end: far beyond every wait that could be told, far from the end of the numbers.
    private static let deepest: Int128 = -(1 << 120)

    /// Where somebody stands in the line.
    struct Ticket: Sendable, Equatable {
        /// What had been taken when they had taken theirs.
        fileprivate var number: Int64
    }

    /// Begins with nothing to give: the first bytes are paid for like all others.
    ///
    /// - Parameters:
    ///   - rate: bytes a second; less than 1 is 1.
    ///   - burst: bytes; absent: what a tenth of a second brings, at least 16 KiB.
    init(rate: Int64, burst: Int64? = nil, now: MonotonicTime) {
        self.rate = max(1, rate)
        ownBurst = burst
        self.burst = Self.burst(of: self.rate, own: burst)
        updated = now
        use = LimitUse(since: now)
    }

    /// Takes bytes, whether or not there is room for them.
    ///
    /// - Returns: milliseconds until they may pass, rounded up, 0 where they may at once; and the ticket to ask again with.
    mutating func take(_ bytes: Int, now: MonotonicTime) -> (wait: Int64, ticket: Ticket) {
        refill(now)
        let count = max(0, bytes)
        level = max(Self.deepest, level - Int128(count) * Self.second)
        taken &+= Int64(count)
        let isWithinSlack = level >= -Int128(rate) * Self.slack * 1_000_000
        return (isWithinSlack ? 0 : milliseconds(toPay: level), Ticket(number: taken))
    }

    /// Milliseconds until those with the ticket may pass, rounded up; 0: now.
    mutating func wait(for ticket: Ticket, now: MonotonicTime) -> Int64 {
        refill(now)
        let later = taken &- ticket.number
        // The bucket is not the one that they took from: that one's debts are gone.
        guard later >= 0 else { return 0 }
        return milliseconds(toPay: level + Int128(later) * Self.second)
    }

    /// Bytes that were taken and do not pass.
    mutating func give(back bytes: Int) {
        level = min(Int128(burst) * Self.second, level + Int128(max(0, bytes)) * Self.second)
    }

    /// Whether those who take bytes would take more if the rate were higher: nearly all that might pass lately was taken.
    /// So as long as that is not known.
    mutating func isExhausted(now: MonotonicTime) -> Bool {
        refill(now)
        return use.isFull
    }

    /// Changes the rate from now on; what is owed stays owed and is paid at the new rate.
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
        // A time that lies back gives nothing, and takes nothing from the times to come.
        guard now > updated else { return }
        let (gain, overflow) = Int128(now.nanoseconds - updated.nanoseconds).multipliedReportingOverflow(
            by: Int128(rate))
        updated = now
        let full = Int128(burst) * Self.second
        let unused = overflow ? .max : max(0, gain - (full - level))
        level = unused > 0 ? full : level + gain
        use.note(unused: unused, rate: rate, now: now)
    }

    private static func burst(of rate: Int64, own: Int64?) -> Int64 {
        max(0, own ?? max(leastBurst, rate / 10))
    }
}
