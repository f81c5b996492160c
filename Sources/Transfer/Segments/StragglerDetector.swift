/// The detection of connections that are so slow that their remaining bytes are requested again.
///
/// It is a value without a clock: the caller passes the time and the state of the connections.
struct StragglerDetector {
    /// A connection under evaluation.
    struct Subject {
        let number: Int
        /// Milliseconds for which it can be judged: since its first bytes, or since they were due.
        var watched: Int64
        /// The rate in bytes per second; 0 before its response.
        var rate: Double
        /// The number of bytes that it has yet to receive.
        var rest: Int64
        /// Whether another connection uses the same source.
        var hasNeighbour: Bool
        /// Whether other connections fetch the file too.
        var isShared: Bool
        /// The rate of the fastest other connection to the same source, in bytes per second.
        var neighbours: Double
        /// The rate of the fastest other connection to any source, in bytes per second.
        var others: Double
    }

    /// The replacements by connection: the time before which it is not replaced again, and their number.
    private var replacements: [Int: (until: Int64, count: Int)] = [:]

    /// Milliseconds for which a connection is watched before it is considered slow.
    private static let watchingTime: Int64 = 1_000
    /// Milliseconds for which a source's only connection may receive nothing while others receive bytes.
    private static let silence: Int64 = 3_000
    /// The rate in bytes per second below which a source counts as supplying nothing.
    private static let leastRate = 1024.0
    /// The maximum number of replacements of a connection.
    private static let limit = 8

    /// Returns whether a connection is to be replaced, and if so records the replacement.
    ///
    /// - Parameters:
    ///   - best: The highest rate of any connection so far, in bytes per second.
    ///   - setUp: The response time of a request in seconds.
    ///   - now: The current time in milliseconds on the monotonic clock.
    mutating func replaces(_ subject: Subject, best: Double, setUp: Double, now: Int64) -> Bool {
        let isOnlyOne = subject.isShared && !subject.hasNeighbour
        guard subject.watched >= (isOnlyOne ? Self.silence : Self.watchingTime) + Int64(4000 * setUp) else {
            return false
        }
        // Connections to other sources are no reference, as long as this one receives bytes.
        let shared = isOnlyOne && subject.rate < Self.leastRate ? subject.others : subject.neighbours
        let reference = subject.isShared ? shared : best
        let rest = Double(subject.rest)
        guard reference > 0, subject.rate * SegmentTable.slowness < reference,
            rest > subject.rate * (2 * setUp + rest / reference + 0.5)
        else { return false }
        let before = replacements[subject.number] ?? (0, 0)
        guard now >= before.until, before.count < Self.limit else { return false }
        replacements[subject.number] = (now + 2_000 << Int64(before.count), before.count + 1)
        return true
    }
}
