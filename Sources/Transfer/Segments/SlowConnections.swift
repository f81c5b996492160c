/// Which connections are so far behind that what they have yet to bring is asked for anew.
///
/// A value without a clock: it is told the time and what the connections do.
struct SlowConnections {
    /// One that is looked at.
    struct Subject {
        let number: Int
        /// Milliseconds for which it can be judged: since its first bytes, or since it should have brought some.
        var watched: Int64
        /// Bytes a second; 0 before its answer.
        var rate: Double
        /// Bytes that it has yet to bring.
        var rest: Int64
        /// Another connection asks the same source.
        var hasNeighbour: Bool
        /// Others bring the file too.
        var isShared: Bool
        /// The fastest of the others, in bytes a second: of its source, and of all of them.
        var neighbours: Double
        var others: Double
    }

    /// By connection: when it may be replaced again, and how often it was.
    private var replacements: [Int: (until: Int64, count: Int)] = [:]

    /// Milliseconds that a connection is watched before it is called slow.
    private static let watchingTime: Int64 = 1_000
    /// Milliseconds that a source's only connection may bring nothing while others do.
    private static let silence: Int64 = 3_000
    /// Bytes a second below which a source brings nothing.
    private static let leastRate = 1024.0
    /// So often a connection is replaced before it is left as it is.
    private static let limit = 8

    /// - Parameters:
    ///   - best: the fastest that any connection was, in bytes a second.
    ///   - setUp: seconds until a request is answered.
    ///   - now: milliseconds of a clock that no one sets.
    /// - Returns: whether it is to be replaced; that counts as done then.
    mutating func replaces(_ subject: Subject, best: Double, setUp: Double, now: Int64) -> Bool {
        let isOnlyOne = subject.isShared && !subject.hasNeighbour
        guard subject.watched >= (isOnlyOne ? Self.silence : Self.watchingTime) + Int64(4000 * setUp) else {
            return false
        }
        // Another source's connections are another matter, as long as this one brings anything.
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
