/// `Content-Range: bytes 0-499/1234` (RFC 9110, section 14.4).
struct ContentRange: Equatable {
    /// First and last byte, both included; `nil` for the form of a 416, `bytes */1234`.
    var bounds: ClosedRange<Int64>?
    /// `nil` where the server does not know.
    var total: Int64?

    /// - Returns: `nil` for another unit than bytes, or numbers that contradict each other.
    init?(_ text: String) {
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
        // The greatest number would leave no room for the count of bytes up to it.
        guard let number = Int64(digits: text), number < .max else { return nil }
        return number
    }
}
