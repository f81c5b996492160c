/// The small grammar that the values of fields share (RFC 9110, section 5.6).
enum FieldText {
    /// Space or tab.
    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Without blanks at the ends.
    static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence {
        var rest = bytes[...]
        while let first = rest.first, isBlank(first) { rest = rest.dropFirst() }
        while let last = rest.last, isBlank(last) { rest = rest.dropLast() }
        return rest
    }

    /// Takes a quoted string, its first quote being the next byte, and what escapes mean in it. One that does not end
    /// is taken to the end.
    static func quotedString(_ bytes: inout ArraySlice<UInt8>) -> [UInt8] {
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
    /// A number as protocols write lengths and positions: digits alone, without a sign.
    init?(digits text: some StringProtocol) {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(text) else { return nil }
        self = number
    }
}
