import HTTPTypes
public import Transfer

/// Responses of a server that keeps a file.
extension StubResult {
    /// Returns the response of a server that keeps a file, to a request for the whole or a part of it. `Range`,
    /// `If-Range` and `If-None-Match` count as in RFC 9110 (sections 13 and 14); several ranges are answered with the
    /// whole.
    ///
    /// - Parameters:
    ///   - content: the bytes of the file.
    ///   - request: the request.
    ///   - entityTag: the entity tag of this version, with its quotes.
    ///   - type: the media type.
    public static func file(
        _ content: [UInt8], for request: SentRequest, entityTag: String = "\"1\"",
        type: String = "application/octet-stream"
    ) -> StubResult {
        var fields: HTTPFields = [.eTag: entityTag, .acceptRanges: "bytes"]
        if request.headerFields[.ifNoneMatch] == entityTag { return .status(304, fields: fields) }
        let isSameVersion = request.headerFields[.ifRange].map { $0 == entityTag } ?? true
        guard request.method == .get, isSameVersion, let text = request.headerFields[.range],
            let range = ByteRange(text, size: content.count)
        else { return .data(content, type: type, fields: fields) }
        switch range {
        case .unsatisfiable:
            fields[.contentRange] = "bytes */\(content.count)"
            return .status(416, fields: fields)
        case .bytes(let bytes):
            fields[.contentRange] = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(content.count)"
            return .data(Array(content[bytes]), type: type, status: 206, fields: fields)
        }
    }
}

/// A single range of a file (RFC 9110, section 14.1.2).
private enum ByteRange {
    case bytes(Range<Int>)
    /// A range without a byte of the file.
    case unsatisfiable

    /// - Returns: `nil` if the text is not one range.
    init?(_ text: String, size: Int) {
        guard text.hasPrefix("bytes="), !text.contains(",") else { return nil }
        let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty {
            guard let count = Int(ends[1]), count >= 0 else { return nil }
            self = count > 0 && size > 0 ? .bytes(max(0, size - count)..<size) : .unsatisfiable
            return
        }
        guard let first = Int(ends[0]), first >= 0 else { return nil }
        guard let last = ends[1].isEmpty ? Int.max : Int(ends[1]), last >= first else { return nil }
        self = first < size ? .bytes(first..<(last < size ? last + 1 : size)) : .unsatisfiable
    }
}
