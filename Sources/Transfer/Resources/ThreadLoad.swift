import Curl

/// A measurement of the share of time for which a thread is running, from one call to the next.
struct ThreadLoad {
    private var last: (wall: MonotonicTime, spent: MonotonicTime)?
    /// The minimum share for a thread to count as busy.
    private static let busy = 0.65

    /// Returns whether the calling thread has hardly been idle since the last call. More connections would then not
    /// increase the throughput.
    mutating func isBusy() -> Bool {
        let (wall, spent) = (MonotonicTime.now(), MonotonicTime.ofThread())
        defer { last = (wall, spent) }
        guard let last else { return false }
        let passed = Double(wall.nanoseconds - last.wall.nanoseconds)
        return passed > 0 && Double(spent.nanoseconds - last.spent.nanoseconds) / passed >= Self.busy
    }
}
