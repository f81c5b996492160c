/// The rate of a body, as far as its buffer depends on it.
///
/// A server that limits a rate sends in bursts. A burst alone says nothing: the rate is taken over a whole second.
struct BodyPace {
    /// The beginning of the second under way; `nil` before the first byte.
    private var begun: MonotonicTime?
    /// Bytes that came since then.
    private var bytes = 0
    /// Bytes that came in a quarter of the second before; `nil` in the first second.
    private var lastQuarter: Int?

    /// Milliseconds over which the rate is taken.
    private static let period: Int64 = 1_000

    /// Whether a whole second has passed.
    var isKnown: Bool { lastQuarter != nil }

    /// Bytes that come in a quarter of a second, at least.
    var quarter: Int { max(lastQuarter ?? 0, bytes / 4) }

    mutating func note(_ count: Int, now: MonotonicTime) {
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
