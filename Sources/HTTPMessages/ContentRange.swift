/// The value of a `Content-Range` field, such as `bytes 0-499/1234` (RFC 9110, section 14.4).
package struct ContentRange: Equatable {
    /// The first and last byte position, both inclusive; `nil` for the form of a 416 response, `bytes */1234`.
    package var bounds: ClosedRange<Int64>?
    /// The complete length in bytes; `nil` if the server does not know it.
    package var total: Int64?

    /// Parses a field value.
    ///
    /// - Returns: `nil` if the value is malformed, its unit is not bytes, or its numbers contradict each other.
    package init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[1] != "*" {
            guard let number = Self.number(parts[1]) else { return nil }
            total = number
        }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            return
        }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last else {
            return nil
        }
        if let total, last >= total { return nil }
        bounds = first...last
    }

    private static func number(_ text: Substring) -> Int64? {
        // `Int64.max` is rejected: as a last position, it would make the byte count overflow.
        guard let number = Int64(digits: text), number < .max else { return nil }
        return number
    }
}
