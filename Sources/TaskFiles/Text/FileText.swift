/// The strict decoding of a file's bytes as UTF-8, or as UTF-16 if a byte order mark says so. Invalid bytes are rejected,
/// because repairing one would change a URL or path.
package enum FileText {
    /// Decodes `bytes`.
    ///
    /// - Returns: the text without a leading byte order mark.
    /// - Throws: ``FileError`` at the first byte that is not valid UTF-8, or at the beginning of invalid UTF-16.
    package static func decode(_ bytes: some Collection<UInt8>, file: String) throws(FileError) -> String {
        if let isBigEndian = isUTF16(bytes) {
            guard let text = decodeUTF16(bytes, isBigEndian: isBigEndian) else {
                throw FileError(file: file, at: Position(), "is not UTF-16 text, although its first bytes say so")
            }
            return text
        }
        let body = bytes.starts(with: byteOrderMark) ? bytes.dropFirst(byteOrderMark.count) : bytes[...]
        guard let text = String(validating: body, as: UTF8.self) else {
            throw FileError(
                file: file, at: positionOfFault(in: Array(body)),
                "is not UTF-8 text; dld reads text files only")
        }
        return text
    }

    static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Returns whether bytes begin with a byte order mark of UTF-16, and its order; `nil` without one.
    private static func isUTF16(_ bytes: some Collection<UInt8>) -> Bool? {
        if bytes.starts(with: [0xFF, 0xFE]) { return false }
        return bytes.starts(with: [0xFE, 0xFF]) ? true : nil
    }

    private static func decodeUTF16(_ bytes: some Collection<UInt8>, isBigEndian: Bool) -> String? {
        guard bytes.count.isMultiple(of: 2) else { return nil }
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count / 2)
        var first: UInt8?
        for byte in bytes.dropFirst(2) {
            guard let one = first else {
                first = byte
                continue
            }
            units.append(isBigEndian ? UInt16(one) << 8 | UInt16(byte) : UInt16(byte) << 8 | UInt16(one))
            first = nil
        }
        return String(validating: units, as: UTF16.self)
    }

    /// Returns UTF-16 as UTF-8, for readers that work on bytes, and other bytes as they are.
    static func utf8(_ bytes: [UInt8]) -> [UInt8] {
        guard let isBigEndian = isUTF16(bytes), let text = decodeUTF16(bytes, isBigEndian: isBigEndian) else {
            return bytes
        }
        return Array(text.utf8)
    }

    /// Returns the position of the first control character other than tab, line feed and carriage return.
    static func positionOfControlCharacter(in text: String) -> Position? {
        let offset = text.utf8.firstIndex { ($0 < 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D) || $0 == 0x7F }
        return offset.map { position(after: text[..<$0].utf8) }
    }

    /// Returns the position after `bytes`, with the column in characters; CR LF counts as one character.
    static func position(after bytes: some BidirectionalCollection<UInt8>) -> Position {
        let line = bytes.count { $0 == UInt8(ascii: "\n") } + 1
        let start = bytes.lastIndex(of: UInt8(ascii: "\n")).map(bytes.index(after:)) ?? bytes.startIndex
        return Position(line: line, column: String(decoding: bytes[start...], as: UTF8.self).count + 1)
    }

    /// Returns `line` without leading and trailing spaces, tabs and carriage returns.
    static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        guard let first = line.firstIndex(where: { !isBlank($0) }),
            let last = line.lastIndex(where: { !isBlank($0) })
        else { return line[line.endIndex...] }
        return line[first...last]
    }

    /// Returns the position of the first byte that is not part of a valid character.
    private static func positionOfFault(in bytes: [UInt8]) -> Position {
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        var sound = 0
        while case .scalarValue(let scalar) = decoder.decode(&iterator) {
            sound += UTF8.width(scalar)
        }
        return position(after: bytes[..<min(sound, bytes.count)])
    }
}
