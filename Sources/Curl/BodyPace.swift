/// The rate of a body, for choosing its buffer size.
///
/// A server that limits the rate sends in bursts. A single burst does not show the rate, so it is measured over a whole
/// second.
struct BodyPace {
    /// The beginning of the current second; `nil` before the first byte.
    private var begun: MonotonicTime?
    /// The number of bytes received since then.
    private var bytes = 0
    /// The number of bytes received in a quarter of the previous second; `nil` in the first second.
    private var lastQuarter: Int?

    /// The period over which the rate is measured, in milliseconds.
    private static let period: Int64 = 1_000

    /// Whether the rate was measured over a whole second.
    var isKnown: Bool { lastQuarter != nil }

    /// The number of bytes received in a quarter of a second, at least.
    var quarter: Int { max(lastQuarter ?? 0, bytes / 4) }

    mutating func record(_ count: Int, now: MonotonicTime) {
        let elapsed = begun.map { now.milliseconds(since: $0) } ?? 0
        if elapsed >= Self.period {
            lastQuarter = bytes / Int(clamping: elapsed / (Self.period / 4))
            begun = now
            bytes = 0
        } else if begun == nil {
            begun = now
        }
        bytes += count
    }
}
