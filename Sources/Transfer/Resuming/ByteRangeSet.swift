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
    public var count: Int64 { ranges.reduce(0) { $0 + Int64($1.count) } }

    /// The end of the range that begins at 0; 0 where none does.
    public var contiguousEnd: Int64 {
        guard let first = ranges.first, first.lowerBound == 0 else { return 0 }
        return first.upperBound
    }

    /// Adds a range; what it touches or overlaps becomes one with it.
    public mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        // What arrives in order only moves one end.
        if let last = ranges.indices.last, ranges[last].upperBound == range.lowerBound {
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
