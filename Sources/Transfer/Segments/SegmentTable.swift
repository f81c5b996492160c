/// The assignment of a file's bytes to connections. Claims are assigned in file order, so that the front of the file
/// advances. When no bytes are unclaimed, an idle connection takes bytes from the claim expected to end last.
///
/// It is a value without I/O: the caller reports the connections' positions.
struct SegmentTable {
    /// A byte range assigned to a connection.
    struct Claim: Equatable {
        /// The start of the claim. Its received bytes may not be written yet.
        let start: Int64
        /// The next byte to receive.
        var position: Int64
        /// The end of the claim, exclusive.
        var end: Int64
        /// The connection's rate in bytes per second; 0 if unknown.
        var rate: Double = 0

        var rest: Int64 { end - position }
        /// The estimated seconds to the end of the claim.
        var time: Double { rest <= 0 ? 0 : rate > 0 ? Double(rest) / rate : .infinity }
    }

    /// The work assigned to an idle connection.
    enum Work: Equatable {
        case range(Range<Int64>)
        /// The whole rest of the claim of a much slower or silent connection, which is ended.
        case takeOver(of: Int, Range<Int64>)
        case none
    }

    /// The length of the file in bytes.
    let total: Int64
    /// The claims by connection number.
    private(set) var claims: [Int: Claim] = [:]

    /// The maximum size of a claim in bytes. It limits how far the front of the file, and a reader there, can fall
    /// behind.
    static let largest: Int64 = 64 << 20
    /// The minimum size in bytes that justifies a request of its own.
    static let smallest: Int64 = 1 << 20
    /// The minimum size in bytes that another connection takes from a claim.
    private static let smallestShare: Int64 = 256 << 10
    /// The minimum size in bytes if a share of ``smallestShare`` would take longer than ``shortestShare``.
    private static let smallestSlowShare: Int64 = 32 << 10
    /// The shortest duration of a share in seconds, at the claim's current rate.
    private static let shortestShare = 0.25
    /// The factor by which a connection must be slower than another to be replaced.
    static let slowness = 4.0

    init(total: Int64) {
        self.total = total
    }

    /// Records a connection's position and rate.
    mutating func move(_ number: Int, to position: Int64, rate: Double) {
        claims[number]?.position = position
        claims[number]?.rate = rate
    }

    /// Removes the claim of a connection that no longer fetches bytes.
    mutating func release(_ number: Int) { claims[number] = nil }

    /// Extends claims after a connection was closed. A connection whose claim ends at unclaimed bytes continues into
    /// them, up to the end of its response. This saves a request, which a server with a low connection limit may
    /// refuse.
    ///
    /// - Parameter reach: Returns the end of a connection's response; `nil` if there is no response yet.
    mutating func extend(written: ByteRangeSet, reach: (Int) -> Int64?) {
        for gap in unclaimed(written: written) {
            guard let number = claims.first(where: { $0.value.end == gap.lowerBound })?.key,
                let end = reach(number), end > gap.lowerBound
            else { continue }
            claims[number]?.end = min(gap.upperBound, end)
        }
    }

    /// Extends a claim whose end a connection has reached, where its response goes on: into the claim of a silent
    /// connection, which keeps an empty one, or into unclaimed bytes. The response need not be broken off then, which a
    /// server that serves one connection at a time would answer by serving another one.
    ///
    /// - Parameters:
    ///   - reach: The end of the response.
    ///   - silent: The connections that have received nothing of their claims.
    ///   - connections: The number of connections that share the work.
    ///   - setUp: The seconds from a request to its first byte.
    /// - Returns: Whether the claim was extended.
    mutating func extend(
        _ number: Int, upTo reach: Int64, silent: Set<Int>, written: ByteRangeSet, connections: Int, setUp: Double
    ) -> Bool {
        guard let claim = claims[number], claim.end < reach else { return false }
        let next = claims.first { number, next in
            next.start == claim.end && next.position == claim.end && next.rest > 0 && silent.contains(number)
        }
        if let next {
            claims[number]?.end = min(reach, next.value.end)
            put(next.key, on: next.value.start..<next.value.start)
            return true
        }
        let gaps = unclaimed(written: written)
        guard let gap = gaps.first, gap.lowerBound == claim.end else { return false }
        let left = gaps.reduce(0) { $0 + Int64($1.count) }
        let share = share(of: gap, left: left, among: connections, rate: claim.rate, setUp: setUp)
        claims[number]?.end = min(reach, share.upperBound)
        return true
    }

    /// Assigns `range` to a connection.
    mutating func put(_ number: Int, on range: Range<Int64>) {
        claims[number] = Claim(start: range.lowerBound, position: range.lowerBound, end: range.upperBound)
    }

    /// Returns the ranges that are neither written nor claimed.
    func unclaimed(written: ByteRangeSet) -> [Range<Int64>] {
        var taken = written
        for claim in claims.values where claim.start < claim.end { taken.insert(claim.start..<claim.end) }
        return taken.gaps(in: 0..<total)
    }

    /// Assigns the next work to the connection `number`.
    ///
    /// - Parameters:
    ///   - written: The bytes already written.
    ///   - connections: The number of connections that share the work.
    ///   - rate: The connection's rate in bytes per second; 0 if unknown.
    ///   - setUp: The seconds from a request to its first byte.
    ///   - silent: The connections whose claims are taken over because they receive nothing.
    mutating func next(
        for number: Int, written: ByteRangeSet, connections: Int, rate: Double, setUp: Double, silent: Set<Int> = []
    ) -> Work {
        release(number)
        let gaps = unclaimed(written: written)
        if let gap = gaps.first {
            let left = gaps.reduce(0) { $0 + Int64($1.count) }
            return give(number, share(of: gap, left: left, among: connections, rate: rate, setUp: setUp))
        }
        guard
            let (victim, claim) = claims.max(by: {
                ($0.value.time, $0.value.rest, $1.key) < ($1.value.time, $1.value.rest, $0.key)
            })
        else { return .none }
        let isSlow =
            rate > 0 && claim.rate > 0 && rate >= claim.rate * Self.slowness
            && claim.time > 2 * setUp + Double(claim.rest) / rate
        if isSlow || (silent.contains(victim) && claim.rest > 0) {
            claims[victim] = nil
            put(number, on: claim.position..<claim.end)
            return .takeOver(of: victim, claim.position..<claim.end)
        }
        // The minimum worth sharing exceeds the bytes that the other connection receives while this one is set up.
        let least = max(Self.smallestClaim(at: claim.rate), Int64(claim.rate * setUp))
        guard claim.rest >= 2 * least else { return .none }
        var keeps = claim.rest / 2
        let share = size(of: claim.rest, among: connections, rate: claim.rate, setUp: setUp)
        let isLong = claim.rest > 3 * share
        if isLong {
            // Only the claim of the first response, which extends to the end of the file, is usually this long. Its
            // connection keeps one share, and the rest is assigned anew.
            keeps = share
        } else if rate > 0, claim.rate > 0 {
            keeps = Int64(Double(claim.rest) * claim.rate / (claim.rate + rate))
        }
        let cut = claim.position + max(least, min(keeps, claim.rest - least))
        claims[victim]?.end = cut
        if isLong {
            return next(
                for: number, written: written, connections: connections, rate: rate, setUp: setUp, silent: silent)
        }
        return give(number, cut..<claim.end)
    }

    /// Returns the minimum size in bytes that is taken from a claim whose connection has this rate.
    private static func smallestClaim(at rate: Double) -> Int64 {
        guard rate > 0 else { return smallestShare }
        return max(smallestSlowShare, Int64(min(Double(smallestShare), rate * shortestShare)))
    }

    private mutating func give(_ number: Int, _ range: Range<Int64>) -> Work {
        put(number, on: range)
        return .range(range)
    }

    /// Returns the front of a gap that one connection claims.
    ///
    /// - Parameter left: The number of unclaimed bytes.
    private func share(
        of gap: Range<Int64>, left: Int64, among connections: Int, rate: Double, setUp: Double
    ) -> Range<Int64> {
        let size = size(of: left, among: connections, rate: rate, setUp: setUp)
        return gap.lowerBound..<(Int64(gap.count) < size * 3 / 2 ? gap.upperBound : gap.lowerBound + size)
    }

    /// Returns the size in bytes of a claim out of `left`: at least half a fair share, so that all connections end
    /// together, and large enough that the request overhead is small.
    private func size(of left: Int64, among connections: Int, rate: Double, setUp: Double) -> Int64 {
        let fair = left / Int64(max(1, connections))
        let worthwhile = Int64(min(Double(fair), rate * setUp * 20))
        return min(Self.largest, max(Self.smallest, worthwhile, fair / 2))
    }
}
