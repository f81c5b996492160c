import Curl

/// A rate limit as a value without a clock: bytes are taken as they come, and a debt tells how long to wait.
///
/// Reckoned in bytes times nanoseconds and in whole numbers, so that nothing is rounded away and the rate over a long
/// time is exact.
struct TokenBucket: Sendable, Equatable {
    /// Bytes of burst that a bucket has at least, unless told: what one read brings.
    static let leastBurst: Int64 = 16 * 1024

    /// Bytes a second, at least 1.
    private(set) var rate: Int64
    /// Bytes that may pass at once after a rest.
    private(set) var burst: Int64
    private let ownBurst: Int64?
    /// What may be taken, in bytes times nanoseconds a second; a debt where negative.
    private var level: Int128
    private var updated: MonotonicTime

    private static let second: Int128 = 1_000_000_000
    /// Where debts end: far beyond every wait that could be told, far from the end of the numbers.
    private static let deepest: Int128 = -(1 << 120)

    /// A full bucket.
    ///
    /// - Parameters:
    ///   - rate: bytes a second; less than 1 is 1.
    ///   - burst: bytes; absent: what a quarter of a second brings, at least 16 KiB.
    init(rate: Int64, burst: Int64? = nil, now: MonotonicTime) {
        self.rate = max(1, rate)
        ownBurst = burst
        self.burst = Self.burst(of: self.rate, own: burst)
        level = Int128(self.burst) * Self.second
        updated = now
    }

    /// Takes bytes that came or went, whether or not there is room for them.
    ///
    /// - Returns: milliseconds until the debt is paid, rounded up; 0: go on.
    mutating func take(_ bytes: Int, now: MonotonicTime) -> Int64 {
        refill(now)
        level = max(Self.deepest, level - Int128(max(0, bytes)) * Self.second)
        guard level < 0 else { return 0 }
        let perMillisecond = Int128(rate) * 1_000_000
        return Int64(clamping: (-level + perMillisecond - 1) / perMillisecond)
    }

    /// Changes the rate from now on; what is owed stays owed and is paid at the new rate.
    mutating func setRate(_ rate: Int64, now: MonotonicTime) {
        refill(now)
        self.rate = max(1, rate)
        burst = Self.burst(of: self.rate, own: ownBurst)
        level = min(level, Int128(burst) * Self.second)
    }

    private mutating func refill(_ now: MonotonicTime) {
        // A time that lies back gives nothing, and takes nothing from the times to come.
        guard now > updated else { return }
        let (gain, overflow) = Int128(now.nanoseconds - updated.nanoseconds).multipliedReportingOverflow(
            by: Int128(rate))
        updated = now
        let full = Int128(burst) * Self.second
        level = overflow || gain >= full - level ? full : level + gain
    }

    private static func burst(of rate: Int64, own: Int64?) -> Int64 {
        max(0, own ?? max(leastBurst, rate / 4))
    }
}
