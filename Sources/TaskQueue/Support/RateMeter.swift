import TaskModel

/// A meter of the throughput over the last few seconds, from byte counts sampled at irregular intervals.
struct RateMeter {
    /// The length of the measuring window, in milliseconds.
    private static let window: Milliseconds = 5_000
    /// The minimum interval between samples, in milliseconds. Closer samples are discarded as too inaccurate.
    private static let spacing: Milliseconds = 200

    private var samples: [(at: Milliseconds, bytes: Int64)] = []

    /// Records a byte count.
    ///
    /// - Parameter at: the monotonic time.
    mutating func record(_ bytes: Int64, at: Milliseconds) {
        if let last = samples.last, at - last.at < Self.spacing { return }
        samples.append((at, bytes))
        while samples.count > 2, at - samples[1].at >= Self.window { samples.removeFirst() }
    }

    /// Returns the throughput in bytes per second; `nil` until the first sample is old enough.
    func rate(_ bytes: Int64, at: Milliseconds) -> Int64? {
        guard let first = samples.first, at - first.at >= Self.spacing else { return nil }
        return max(0, bytes.subtractingClamped(first.bytes)).multipliedClamped(by: 1000) / (at - first.at)
    }
}
