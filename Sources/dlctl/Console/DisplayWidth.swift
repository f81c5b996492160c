/// The width of text on a terminal, in columns.
enum DisplayWidth {
    static func of(_ text: String) -> Int {
        text.reduce(0) { $0 + of($1) }
    }

    /// Returns 0 for a lone combining mark, 2 for a wide character of East Asian Width (UAX #11) or an emoji, otherwise
    /// 1.
    static func of(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        // Below U+0300, only a keycap sequence (a digit with U+20E3) is an emoji.
        if first.value < 0x300 { return character.unicodeScalars.contains("\u{20E3}") ? 2 : 1 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        if first.properties.isEmojiPresentation || character.unicodeScalars.contains("\u{FE0F}") { return 2 }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            return 2
        default: return 1
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

    /// Returns `text` padded with spaces to `width` columns.
    static func pad(_ text: String, _ width: Int, right: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - of(text)))
        return right ? spaces + text : text + spaces
    }
}
