/// The strict decoding of a file's bytes as UTF-8. Invalid bytes are rejected, because repairing one would change a URL
/// or path.
package enum FileText {
    /// Decodes `bytes`.
    ///
    /// - Returns: the text without a leading byte order mark.
    /// - Throws: ``FileError`` at the first byte that is not valid UTF-8.
    package static func decode(_ bytes: some Collection<UInt8>, file: String) throws(FileError) -> String {
        let body = bytes.starts(with: byteOrderMark) ? bytes.dropFirst(byteOrderMark.count) : bytes[...]
        guard let text = String(validating: body, as: UTF8.self) else {
            throw FileError(
                file: file, at: positionOfFault(in: Array(body)),
                "is not UTF-8 text; dld reads text files only")
        }
        return text
    }

    static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

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
