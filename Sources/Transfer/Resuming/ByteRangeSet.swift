/// Bytes of a file that are there, as ranges without overlap or touch, in ascending order.
public struct ByteRangeSet: Sendable, Equatable {
    /// Ascending, and neither empty nor touching one another.
    public private(set) var ranges: [Range<Int64>] = []

    /// No bytes.
    public init() {}

    /// Any ranges, in any order; empty ones leave nothing.
    public init(_ ranges: some Sequence<Range<Int64>>) {
        for range in ranges { insert(range) }
    }

    /// Bytes in all ranges together.
    public var count: Int64 {
        // By index: an iterator takes memory from the heap where the optimiser does not see to it.
        var sum: Int64 = 0
        for index in 0..<ranges.count { sum += ranges[index].upperBound - ranges[index].lowerBound }
        return sum
    }

    /// The end of the last range; 0 where there is none.
    public var end: Int64 { ranges.isEmpty ? 0 : ranges[ranges.count - 1].upperBound }

    /// The end of the range that begins at 0; 0 where none does.
    public var contiguousEnd: Int64 {
        guard let first = ranges.first, first.lowerBound == 0 else { return 0 }
        return first.upperBound
    }

    /// The end of the range that holds the byte at `offset`; `offset` itself where none does.
    public func end(ofRangeAt offset: Int64) -> Int64 {
        ranges.first { $0.contains(offset) }?.upperBound ?? offset
    }

    /// What of it lies before `end`.
    public func clamped(to end: Int64) -> ByteRangeSet {
        ByteRangeSet(ranges.lazy.filter { $0.lowerBound < end }.map { $0.lowerBound..<min($0.upperBound, end) })
    }

    /// What of `bounds` is in none of the ranges, in ascending order.
    public func gaps(in bounds: Range<Int64>) -> [Range<Int64>] {
        var gaps: [Range<Int64>] = []
        var start = bounds.lowerBound
        for range in ranges where range.upperBound > start {
            guard range.lowerBound < bounds.upperBound else { break }
            if range.lowerBound > start { gaps.append(start..<range.lowerBound) }
            start = range.upperBound
        }
        if start < bounds.upperBound { gaps.append(start..<bounds.upperBound) }
        return gaps
    }

    /// Adds a range; what it touches or overlaps becomes one with it.
    public mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        // What arrives in order only moves one end.
        let last = ranges.count - 1
        if last >= 0, ranges[last].upperBound == range.lowerBound {
            ranges[last] = ranges[last].lowerBound..<range.upperBound
            return
        }
        let start = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
        var end = start
        var merged = range
        while end < ranges.endIndex, ranges[end].lowerBound <= range.upperBound {
            merged = min(merged.lowerBound, ranges[end].lowerBound)..<max(merged.upperBound, ranges[end].upperBound)
            end += 1
        }
        // One of several writers moves its end: nothing shifts.
        if end == start + 1 {
            ranges[start] = merged
            return
        }
        ranges.replaceSubrange(start..<end, with: [merged])
    }
}

extension ByteRangeSet: Codable {
    /// `[start, end, start, end, …]`, ends excluded.
    public init(from decoder: any Decoder) throws {
        let numbers = try decoder.singleValueContainer().decode([Int64].self)
        for index in stride(from: 0, to: numbers.count - 1, by: 2) where numbers[index] >= 0 {
            guard numbers[index] < numbers[index + 1] else { continue }
            insert(numbers[index]..<numbers[index + 1])
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(ranges.flatMap { [$0.lowerBound, $0.upperBound] })
    }
}
