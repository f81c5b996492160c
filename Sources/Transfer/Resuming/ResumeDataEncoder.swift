/// An encoder for the successive resume data of one part. While only the ranges change, it encodes only these.
package struct ResumeDataEncoder: Sendable {
    /// The last resume data without ranges, and their encoded form before and after the elements of the ranges.
    private var last: (data: ResumeData, before: [UInt8], after: [UInt8])?

    package init() {}

    /// Returns the encoded form of `data`, equal in content to ``ResumeData/bytes``.
    package mutating func bytes(of data: ResumeData) -> [UInt8] {
        var rest = data
        rest.ranges = ByteRangeSet()
        if last?.data != rest { last = Self.split(rest).map { (rest, $0.before, $0.after) } }
        guard let last else { return data.bytes }
        var bytes = last.before
        for (index, range) in data.ranges.ranges.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: "\(range.lowerBound),\(range.upperBound)".utf8)
        }
        return bytes + last.after
    }

    /// Splits the encoded form of resume data without ranges where the ranges belong; `nil` if the place is not unique.
    private static func split(_ data: ResumeData) -> (before: [UInt8], after: [UInt8])? {
        let bytes = data.bytes
        // Within a string the quotation marks would be escaped.
        let places = bytes.ranges(of: Array(#""ranges":[]"#.utf8))
        guard places.count == 1, let place = places.first else { return nil }
        let end = place.upperBound - 1
        return (Array(bytes[..<end]), Array(bytes[end...]))
    }
}
