import Curl

/// How much of the time a thread is at work, from one look to the next.
struct ThreadLoad {
    private var last: (wall: MonotonicTime, spent: MonotonicTime)?
    /// The share of the time that a busy thread is at work.
    private static let busy = 0.65

    /// Whether the calling thread has hardly rested since this was last asked: then it is not the line that is to be
    /// filled.
    mutating func isBusy() -> Bool {
        let (wall, spent) = (MonotonicTime.now(), MonotonicTime.ofThread())
        defer { last = (wall, spent) }
        guard let last else { return false }
        let passed = Double(wall.nanoseconds - last.wall.nanoseconds)
        return passed > 0 && Double(spent.nanoseconds - last.spent.nanoseconds) / passed >= Self.busy
    }
}
