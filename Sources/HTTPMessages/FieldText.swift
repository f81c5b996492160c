/// The common grammar of field values (RFC 9110, section 5.6).
package enum FieldText {
    /// Returns whether a byte is a space or a tab.
    package static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Returns the bytes without leading and trailing blanks.
    package static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence {
        var rest = bytes[...]
        while let first = rest.first, isBlank(first) { rest = rest.dropFirst() }
        while let last = rest.last, isBlank(last) { rest = rest.dropLast() }
        return rest
    }

    /// Consumes a quoted string, whose opening quote is the next byte, and returns its unescaped content. An
    /// unterminated string extends to the end of the input.
    package static func quotedString(_ bytes: inout ArraySlice<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        bytes = bytes.dropFirst()
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return text
            case UInt8(ascii: "\\"): text.append(bytes.popFirst() ?? byte)
            default: text.append(byte)
            }
        }
        return text
    }
}

extension Int64 {
    /// Parses a length or position in a protocol: digits only, without a sign.
    init?(digits bytes: some Sequence<UInt8>) {
        var number: Int64?
        for byte in bytes {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (tens, overflows) = (number ?? 0).multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = tens.addingReportingOverflow(Int64(byte - 0x30))
            guard !overflows, !overflowsToo else { return nil }
            number = sum
        }
        guard let number else { return nil }
        self = number
    }

    package init?(digits text: some StringProtocol) { self.init(digits: text.utf8) }
}
