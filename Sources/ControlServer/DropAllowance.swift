import Curl

/// A limit on how often each user's unasked files are dropped: a process is started each time, and others need processes
/// too.
struct DropAllowance {
    /// In one second.
    static let mostOfUser = 32

    private var counts: [UInt32: Int] = [:]
    private var begun = MonotonicTime.now()

    /// Counts one more.
    ///
    /// - Returns: `false` where the user has had as many already.
    mutating func allows(_ user: UInt32, at now: MonotonicTime = .now()) -> Bool {
        if begun.milliseconds(until: now) >= 1_000 { (counts, begun) = ([:], now) }
        let count = counts[user, default: 0]
        guard count < Self.mostOfUser else { return false }
        counts[user] = count + 1
        return true
    }
}
