import TaskModel

/// Bytes a second over the last few seconds, from counts taken at uneven moments.
struct RateMeter {
    /// Milliseconds that count.
    private static let window: Milliseconds = 5_000
    /// Counts closer together than this say too little to be kept.
    private static let spacing: Milliseconds = 200

    private var samples: [(at: Milliseconds, bytes: Int64)] = []

    /// - Parameter at: of a clock that no one sets.
    mutating func note(_ bytes: Int64, at: Milliseconds) {
        if let last = samples.last, at - last.at < Self.spacing { return }
        samples.append((at, bytes))
        while samples.count > 2, at - samples[1].at >= Self.window { samples.removeFirst() }
    }

    /// `nil` until there are two counts.
    func rate(_ bytes: Int64, at: Milliseconds) -> Int64? {
        guard let first = samples.first, at - first.at >= Self.spacing else { return nil }
        return max(0, bytes.subtractingClamped(first.bytes)).multipliedClamped(by: 1000) / (at - first.at)
    }
}
