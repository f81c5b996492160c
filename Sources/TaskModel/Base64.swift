/// Base64 (RFC 4648, section 4) with padding, in its canonical form only: no line breaks, and the unused bits of the
/// last digit are zero.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")
    /// The value of each byte as a digit; 64 for a byte that is not a digit.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 64, count: 256)
        for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
        return values
    }()

    static func encode(_ bytes: [UInt8]) -> String {
        let (alphabet, padding) = (alphabet, padding)
        let length = (bytes.count + 2) / 3 * 4
        return String(unsafeUninitializedCapacity: length) { text in
            var end = 0
            for start in stride(from: 0, to: bytes.count, by: 3) {
                let count = min(3, bytes.count - start)
                var group: UInt32 = 0
                for offset in 0..<3 { group = group << 8 | (offset < count ? UInt32(bytes[start + offset]) : 0) }
                for digit in 0..<4 {
                    text[end] =
                        digit <= count ? alphabet[Int(group >> UInt32(18 - 6 * digit) & 0x3F)] : padding
                    end += 1
                }
            }
            return end
        }
    }

    /// Decodes canonical base64.
    ///
    /// - Returns: `nil` where `text` is not exactly what ``encode(_:)`` writes.
    static func decode(_ text: String) -> [UInt8]? {
        let (digits, values) = (Array(text.utf8), values)
        guard digits.count % 4 == 0 else { return nil }
        let padded = digits.reversed().prefix(2).prefix { $0 == padding }.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3)
        for start in stride(from: 0, to: digits.count, by: 4) {
            let missing = start + 4 == digits.count ? padded : 0
            var group: UInt32 = 0
            for offset in 0..<4 {
                let value = offset < 4 - missing ? values[Int(digits[start + offset])] : 0
                guard value < 64 else { return nil }
                group = group << 6 | UInt32(value)
            }
            guard missing == 0 || group & (missing == 1 ? 0xFF : 0xFFFF) == 0 else { return nil }
            for offset in 0..<(3 - missing) {
                bytes.append(UInt8(truncatingIfNeeded: group >> UInt32(16 - 8 * offset)))
            }
        }
        return bytes
    }
}
