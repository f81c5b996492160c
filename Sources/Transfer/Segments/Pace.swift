/// How fast one connection brings bytes: a mean in which the last second counts most, or the last few seconds where its
/// bytes come in bursts.
struct Pace {
    /// Bytes a second; 0 where nothing is known.
    private(set) var rate: Double = 0
    private var last: (time: Int64, bytes: Int64)?
    private var recent = 0.0
    private var long = 0.0
    /// Milliseconds that were looked at, and those of them since the last byte.
    private var watched = 0.0
    private var silence = 0.0
    /// Bytes came after a silence.
    private var isBursty = false

    /// Milliseconds after which an old rate counts for a third, where bytes come evenly and where they do not.
    private static let memory = 700.0
    private static let longMemory = 3_000.0
    /// Milliseconds within which it cannot be told yet whether a server counts by the second.
    private static let beginning = 1_300.0
    /// Milliseconds without a byte that make a burst of what follows, and that are more than a pause between two.
    private static let gap = 200.0
    private static let stall = 2_000.0

    /// - Parameters:
    ///   - bytes: that came so far.
    ///   - now: milliseconds of a clock that no one sets.
    mutating func note(_ bytes: Int64, at now: Int64) {
        guard let last else { return self.last = (now, bytes) }
        let elapsed = Double(now - last.time)
        guard elapsed >= 20 else { return }
        let present = Double(bytes - last.bytes) / elapsed * 1000
        watched += elapsed
        if present > 0 {
            if silence >= Self.gap { isBursty = true }
            silence = 0
        } else {
            silence += elapsed
        }
        recent = recent == 0 ? present : recent + (present - recent) * min(1, elapsed / Self.memory)
        long += (present - long) * min(1, max(elapsed / Self.longMemory, elapsed / watched))
        let isEven = watched >= Self.beginning && (!isBursty || silence >= Self.stall)
        rate = isEven ? recent : long
        self.last = (now, bytes)
    }

    /// The time until the next byte does not count, as when an answer is waited for.
    mutating func pause() { last = nil }
}
