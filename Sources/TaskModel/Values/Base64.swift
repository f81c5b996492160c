import FoundationEssentials

/// Base64 (RFC 4648, section 4) with padding, in its canonical form only: no line breaks, and the unused bits of the
/// last digit are zero.
enum Base64 {
    static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    /// Decodes canonical base64.
    ///
    /// - Returns: `nil` where `text` is not exactly what ``encode(_:)`` writes.
    static func decode(_ text: String) -> [UInt8]? {
        // Foundation ignores the unused bits of the last digit, so that several texts would mean the same bytes.
        guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else { return nil }
        return Array(data)
    }
}
