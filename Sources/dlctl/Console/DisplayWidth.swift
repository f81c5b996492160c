/// The width of text on a terminal, in columns.
enum DisplayWidth {
    static func of(_ text: String) -> Int {
        text.reduce(0) { $0 + of($1) }
    }

    /// Returns 2 for an emoji, also one of several characters (UTS #51), otherwise the columns of the parts as wcwidth(3)
    /// counts them.
    static func of(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        guard let first = scalars.first, first.value >= 0x300 || scalars.count > 1 else { return 1 }
        let makesEmoji = { (scalar: Unicode.Scalar) in
            scalar.value == 0xFE0F || scalar.value == 0x200D || scalar.properties.isEmojiModifier
        }
        if first.properties.isEmojiPresentation || first.properties.isEmoji && scalars.contains(where: makesEmoji) {
            return 2
        }
        return scalars.reduce(0) { $0 + of($1) }
    }

    /// Returns 0 for a mark without a place of its own, 2 for a wide character of East Asian Width (UAX #11), otherwise
    /// 1.
    private static func of(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        return switch scalar.value {
        // The vowels and final consonants that complete a Korean syllable.
        case 0x1160...0x11FF, 0xD7B0...0xD7FF: 0
        case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18D08,
            0x1AFF0...0x1B2FF, 0x1F200...0x1F265, 0x20000...0x3FFFD:
            2
        default: scalar.properties.isEmojiPresentation ? 2 : 1
        }
    }

    /// Returns the part of `text` that fits into `width` columns. An ellipsis marks text that is cut off.
    static func fit(_ text: String, _ width: Int) -> String {
        guard of(text) > width else { return text }
        guard width > 0 else { return "" }
        var kept = ""
        var used = 0
        for character in text {
            let columns = of(character)
            guard used + columns <= width - 1 else { break }
            kept.append(character)
            used += columns
        }
        return kept + "…"
    }

    /// Returns `text` shortened to `width` columns with an ellipsis in the middle, so that the end of a name remains
    /// visible.
    static func fitMiddle(_ text: String, _ width: Int) -> String {
        guard of(text) > width else { return text }
        guard width > 2 else { return fit(text, width) }
        let characters = Array(text)
        var (used, first, last) = (1, 0, characters.endIndex)
        func room(_ columns: Int, upTo limit: Int) -> Bool { used + columns <= limit }
        let head = width - (width - 1) / 2
        while first < last, room(of(characters[first]), upTo: head) {
            used += of(characters[first])
            first += 1
        }
        while last > first, room(of(characters[last - 1]), upTo: width) {
            last -= 1
            used += of(characters[last])
        }
        return String(characters[..<first]) + "…" + String(characters[last...])
    }

    /// Returns the column at which the second of two texts in one line begins; two spaces precede it. It is `usual` unless
    /// a text would be cut there beside free space.
    ///
    /// - Parameters:
    ///   - first: the width of the first text.
    ///   - second: the width of the second text.
    ///   - width: the width of the line.
    static func split(_ first: Int, _ second: Int, usual: Int, width: Int) -> Int {
        let latest = width - second
        return first + 2 > usual ? max(usual, min(first + 2, latest)) : min(usual, max(first + 2, latest))
    }

    /// Returns `text` padded with spaces to `width` columns.
    static func pad(_ text: String, _ width: Int, right: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - of(text)))
        return right ? spaces + text : text + spaces
    }
}
