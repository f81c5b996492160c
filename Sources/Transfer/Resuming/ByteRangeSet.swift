// Every written chunk is inserted here. The standard library's `RangeSet` is not specialised for `Int64`: in a release
// build, an insertion at the end takes it several microseconds in place of 5 ns.

/// A set of a file's bytes, as ascending ranges that neither overlap nor touch.
public struct ByteRangeSet: Sendable, Equatable {
    /// The non-empty ranges in ascending order. They neither overlap nor touch.
    public private(set) var ranges: [Range<Int64>] = []

    /// Creates an empty set.
    public init() {}

    /// Creates a set from ranges in any order. Empty ranges are ignored.
    public init(_ ranges: some Sequence<Range<Int64>>) {
        for range in ranges { insert(range) }
    }

    /// The number of bytes in all ranges.
    public var count: Int64 {
        // An index loop is used because an iterator allocates on the heap unless the optimiser removes it.
        var sum: Int64 = 0
        for index in 0..<ranges.count { sum += ranges[index].upperBound - ranges[index].lowerBound }
        return sum
    }

    /// The end of the last range; 0 for an empty set.
    public var end: Int64 { ranges.isEmpty ? 0 : ranges[ranges.count - 1].upperBound }

    /// The end of the range that begins at 0; 0 if there is none.
    public var contiguousEnd: Int64 {
        guard let first = ranges.first, first.lowerBound == 0 else { return 0 }
        return first.upperBound
    }

    /// Returns the end of the range that contains the byte at `offset`, or `offset` itself if there is none.
    public func end(ofRangeAt offset: Int64) -> Int64 {
        ranges.first { $0.contains(offset) }?.upperBound ?? offset
    }

    /// Returns the part of the set before `end`.
    public func clamped(to end: Int64) -> ByteRangeSet {
        ByteRangeSet(ranges.lazy.filter { $0.lowerBound < end }.map { $0.lowerBound..<min($0.upperBound, end) })
    }

    /// Returns the parts of `bounds` outside the set, in ascending order.
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

    /// Adds a range and merges it with the ranges that it touches or overlaps.
    public mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        // Sequential data extends only the last range.
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
        // With several writers, each extends one range in place, so no elements move.
        if end == start + 1 {
            ranges[start] = merged
            return
        }
        ranges.replaceSubrange(start..<end, with: [merged])
    }
}

extension ByteRangeSet: Codable {
    /// Decodes `[start, end, start, end, …]`, with exclusive ends.
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
