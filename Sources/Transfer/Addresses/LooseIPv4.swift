/// A parser for IPv4 addresses in the notations of `inet_aton`. libcurl passes the text of a URL to proxies and
/// `getaddrinfo`, which accept these notations.
enum LooseIPv4 {
    /// Parses an IPv4 address.
    ///
    /// - Parameter text: one to four numbers separated by dots, each decimal, octal (`0177`) or hexadecimal (`0x7f`).
    ///   The last number fills all remaining bytes.
    /// - Returns: the address in host byte order, or `nil` if the text is not an IPv4 address.
    static func number(of text: String) -> UInt32? {
        let parts = folded(text).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...4).contains(parts.count) else { return nil }
        var number: UInt64 = 0
        for (index, part) in parts.enumerated() {
            let bits = index == parts.count - 1 ? 8 * (5 - parts.count) : 8
            guard let value = value(of: part), value < 1 << UInt64(bits) else { return nil }
            number = number << UInt64(bits) | value
        }
        return UInt32(exactly: number)
    }

    private static func value(of part: ArraySlice<UInt8>) -> UInt64? {
        guard part.first == UInt8(ascii: "0"), part.count > 1 else { return value(of: part, radix: 10) }
        let rest = part.dropFirst()
        // On some systems `inet_aton` accepts `0x` as zero.
        if rest.first == UInt8(ascii: "x") { return rest.count == 1 ? 0 : value(of: rest.dropFirst(), radix: 16) }
        return value(of: rest, radix: 8)
    }

    private static func value(of digits: ArraySlice<UInt8>, radix: Int) -> UInt64? {
        // Reject a sign, which `UInt64.init(_:radix:)` would accept.
        guard digits.first.map({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) ?? false else { return nil }
        return UInt64(String(decoding: digits, as: UTF8.self), radix: radix)
    }

    /// Returns the text in lower-case ASCII, as IDNA processing (UTS #46) maps a name with such digits and dots.
    private static func folded(_ text: String) -> [UInt8] {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }
        return Array(
            text.unicodeScalars.map { scalar -> String in
                let properties = scalar.properties
                if [.decimal, .digit].contains(properties.numericType), let value = properties.numericValue {
                    return (0...9).first { Double($0) == value }.map { String($0) } ?? ""
                }
                switch scalar.value {
                case 0x3002, 0xFF0E, 0xFF61: return "."
                // Full-width letters.
                case 0xFF21...0xFF3A, 0xFF41...0xFF5A:
                    return Unicode.Scalar(scalar.value - 0xFEE0).map { String($0).lowercased() } ?? ""
                default: return String(scalar).lowercased()
                }
            }.joined().utf8)
    }
}
