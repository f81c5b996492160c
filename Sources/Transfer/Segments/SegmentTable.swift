/// Which connection fetches which bytes of a file: claims are taken in the order of the file, so that its front moves
/// on, and where none are left a finished connection takes over from the one that would be last to end.
///
/// A value without I/O: the run tells it where its connections stand.
struct SegmentTable {
    /// What one connection is to fetch.
    struct Claim: Equatable {
        /// Where it begins; what it has brought may not be written yet.
        let start: Int64
        /// The next byte that it is to bring.
        var position: Int64
        /// Where it is to stop.
        var end: Int64
        /// Bytes a second that it brings; 0 where that is not known yet.
        var rate: Double = 0

        var rest: Int64 { end - position }
        /// Seconds to its end.
        var time: Double { rate > 0 ? Double(rest) / rate : .infinity }
    }

    /// What a connection that wants work is given.
    enum Work: Equatable {
        case range(Range<Int64>)
        /// The whole rest of a claim whose connection is much slower, and ends.
        case takeOver(of: Int, Range<Int64>)
        case none
    }

    /// Bytes of the file.
    let total: Int64
    /// By the number of the connection.
    private(set) var claims: [Int: Claim] = [:]

    /// Bytes that one claim has at most, so that the front, and what reads there, is never far behind.
    static let largest: Int64 = 64 << 20
    /// Bytes that are worth a request of their own.
    static let smallest: Int64 = 1 << 20
    /// Bytes that a second connection takes over of a claim at least, and where those take it longer than
    /// ``shortestShare``.
    private static let smallestShare: Int64 = 256 << 10
    private static let smallestSlowShare: Int64 = 32 << 10
    /// Seconds.
    private static let shortestShare = 0.25
    /// So many times slower than another is a connection that is replaced.
    static let slowness = 4.0

    init(total: Int64) {
        self.total = total
    }

    /// Notes where a connection stands.
    mutating func move(_ number: Int, to position: Int64, rate: Double) {
        claims[number]?.position = position
        claims[number]?.rate = rate
    }

    /// A connection fetches nothing any more.
    mutating func release(_ number: Int) { claims[number] = nil }

    /// A connection was let go: whoever stands right before bytes that nobody fetches any more goes on into them, as far
    /// as its answer reaches. That spares a request, which a server that wants few connections may refuse.
    ///
    /// - Parameter reach: where the answer of a connection ends; `nil`: it has none yet.
    mutating func extend(written: ByteRangeSet, reach: (Int) -> Int64?) {
        for gap in unclaimed(written: written) {
            guard let number = claims.first(where: { $0.value.end == gap.lowerBound })?.key,
                let end = reach(number), end > gap.lowerBound
            else { continue }
            claims[number]?.end = min(gap.upperBound, end)
        }
    }

    /// A connection is at work on `range`.
    mutating func put(_ number: Int, on range: Range<Int64>) {
        claims[number] = Claim(start: range.lowerBound, position: range.lowerBound, end: range.upperBound)
    }

    /// What nobody has and nobody fetches.
    func unclaimed(written: ByteRangeSet) -> [Range<Int64>] {
        var taken = written
        for claim in claims.values where claim.start < claim.end { taken.insert(claim.start..<claim.end) }
        return taken.gaps(in: 0..<total)
    }

    /// What `number` is to fetch next.
    ///
    /// - Parameters:
    ///   - written: what is there.
    ///   - connections: as many are to share the work.
    ///   - rate: bytes a second that this connection brings, as far as is known; 0: unknown.
    ///   - setUp: seconds that pass before a request brings its first byte.
    mutating func next(
        for number: Int, written: ByteRangeSet, connections: Int, rate: Double, setUp: Double
    ) -> Work {
        release(number)
        let gaps = unclaimed(written: written)
        if let gap = gaps.first {
            let left = gaps.reduce(0) { $0 + Int64($1.count) }
            let size = size(of: left, among: connections, rate: rate, setUp: setUp)
            return give(
                number, gap.lowerBound..<(Int64(gap.count) < size * 3 / 2 ? gap.upperBound : gap.lowerBound + size))
        }
        guard
            let (victim, claim) = claims.max(by: {
                ($0.value.time, $0.value.rest, $1.key) < ($1.value.time, $1.value.rest, $0.key)
            })
        else { return .none }
        if rate > 0, claim.rate > 0, rate >= claim.rate * Self.slowness,
            claim.time > 2 * setUp + Double(claim.rest) / rate
        {
            claims[victim] = nil
            put(number, on: claim.position..<claim.end)
            return .takeOver(of: victim, claim.position..<claim.end)
        }
        // What is worth sharing: more than the other brings while this one is being set up.
        let least = max(Self.leastShare(at: claim.rate), Int64(claim.rate * setUp))
        guard claim.rest >= 2 * least else { return .none }
        var keeps = claim.rest / 2
        let share = size(of: claim.rest, among: connections, rate: claim.rate, setUp: setUp)
        let isLong = claim.rest > 3 * share
        if isLong {
            // As the first answer's is, which goes to the end: the others go on behind what it is near to.
            keeps = share
        } else if rate > 0, claim.rate > 0 {
            keeps = Int64(Double(claim.rest) * claim.rate / (claim.rate + rate))
        }
        let cut = claim.position + max(least, min(keeps, claim.rest - least))
        claims[victim]?.end = cut
        if isLong {
            return next(for: number, written: written, connections: connections, rate: rate, setUp: setUp)
        }
        return give(number, cut..<claim.end)
    }

    /// Bytes that a connection is asked for at least where another one brings so many bytes a second.
    private static func leastShare(at rate: Double) -> Int64 {
        guard rate > 0 else { return smallestShare }
        return max(smallestSlowShare, Int64(min(Double(smallestShare), rate * shortestShare)))
    }

    private mutating func give(_ number: Int, _ range: Range<Int64>) -> Work {
        put(number, on: range)
        return .range(range)
    }

    /// Bytes of a claim out of `left`: a fair half, so that all end together, and enough that asking costs little.
    private func size(of left: Int64, among connections: Int, rate: Double, setUp: Double) -> Int64 {
        let fair = left / Int64(max(1, connections))
        let worthwhile = Int64(min(Double(fair), rate * setUp * 20))
        return min(Self.largest, max(Self.smallest, worthwhile, fair / 2))
    }
}
