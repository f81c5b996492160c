import Curl

/// A limit on how often the unrequested files of each user are dropped. Each time starts a process, and other users
/// need processes too.
struct DropAllowance {
    /// The most drops per user in one second.
    static let mostOfUser = 32

    private var counts: [UInt32: Int] = [:]
    private var begun = MonotonicTime.now()

    /// Counts one drop.
    ///
    /// - Returns: `false` if the user has reached the limit.
    mutating func allows(_ user: UInt32, at now: MonotonicTime = .now()) -> Bool {
        if begun.milliseconds(until: now) >= 1_000 { (counts, begun) = ([:], now) }
        let count = counts[user, default: 0]
        guard count < Self.mostOfUser else { return false }
        counts[user] = count + 1
        return true
    }
}
