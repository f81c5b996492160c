/// How fast one connection brings bytes: a mean in which the last second counts most.
struct Pace {
    /// Bytes a second; 0 where nothing is known.
    private(set) var rate: Double = 0
    private var last: (time: Int64, bytes: Int64)?

    /// Milliseconds after which an old rate counts for a third.
    private static let memory = 700.0

    /// - Parameters:
    ///   - bytes: that came so far.
    ///   - now: milliseconds of a clock that no one sets.
    mutating func note(_ bytes: Int64, at now: Int64) {
        guard let last else { return self.last = (now, bytes) }
        let elapsed = Double(now - last.time)
        guard elapsed >= 20 else { return }
        let present = Double(bytes - last.bytes) / elapsed * 1000
        let share = min(1, elapsed / Self.memory)
        rate = rate == 0 ? present : rate + (present - rate) * share
        self.last = (now, bytes)
    }

    /// The time until the next byte does not count, as when an answer is waited for.
    mutating func pause() { last = nil }
}
