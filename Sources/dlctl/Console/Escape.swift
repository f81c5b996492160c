import TaskModel

/// Escapes that make untrusted text safe to display: it cannot control the terminal or change the text direction.
enum Escape {
    /// Returns text with visible escapes for C0 and C1 controls, line separators, and bidirectional and invisible
    /// characters. Zero-width joiners and variation selectors within emoji are kept.
    static func visible(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isHidden) else { return text }
        var shown = ""
        let scalars = Array(text.unicodeScalars)
        for (index, scalar) in scalars.enumerated() {
            guard scalar.isHidden, !belongsToEmoji(at: index, in: scalars) else {
                shown.unicodeScalars.append(scalar)
                continue
            }
            switch scalar {
            case "\n": shown += "\\n"
            case "\r": shown += "\\r"
            case "\t": shown += "\\t"
            default:
                let hex = String(scalar.value, radix: 16, uppercase: true)
                shown += "\\u{\(hex)}"
            }
        }
        return shown
    }

    /// Returns equivalent JSON with the same characters escaped as `\uXXXX` (RFC 8259, section 7). These characters can
    /// occur only within strings.
    ///
    /// - Parameter json: the output of an encoder, in which C0 controls are already escaped.
    static func json(_ json: String) -> String {
        guard json.utf8.contains(where: { $0 >= 0x7F }), json.unicodeScalars.contains(where: isHiddenInJSON) else {
            return json
        }
        var shown = String.UnicodeScalarView()
        for scalar in json.unicodeScalars {
            guard isHiddenInJSON(scalar) else {
                shown.append(scalar)
                continue
            }
            for unit in String(scalar).utf16 {
                let hex = String(unit, radix: 16)
                shown.append(contentsOf: ("\\u" + String(repeating: "0", count: 4 - hex.count) + hex).unicodeScalars)
            }
        }
        return String(shown)
    }

    /// Whether the scalar must be escaped. Below U+007F the encoder has escaped controls in strings; the rest is its
    /// layout.
    private static func isHiddenInJSON(_ scalar: Unicode.Scalar) -> Bool { scalar.value >= 0x7F && scalar.isHidden }

    /// Whether the scalar is a variation selector that belongs to the preceding emoji, or joins two emoji.
    private static func belongsToEmoji(at index: Int, in scalars: [Unicode.Scalar]) -> Bool {
        if scalars[index].value != 0xFE0F { return joinsEmoji(at: index, in: scalars) }
        // Digits are emoji only in a keycap sequence (with U+20E3).
        guard index > 0, scalars[index - 1].properties.isEmoji else { return false }
        return scalars[index - 1].value > 0x7F || index + 1 < scalars.count && scalars[index + 1].value == 0x20E3
    }

    /// Whether the scalar is a zero-width joiner between two emoji (UTS #51, ED-16).
    private static func joinsEmoji(at index: Int, in scalars: [Unicode.Scalar]) -> Bool {
        guard scalars[index].value == 0x200D, index + 1 < scalars.count, isEmoji(scalars[index + 1])
        else { return false }
        // Skin-tone modifiers and variation selectors belong to the emoji before them.
        let before = scalars[..<index].last { !$0.properties.isEmojiModifier && $0.value != 0xFE0F }
        return before.map(isEmoji) ?? false
    }

    /// Whether the scalar is an emoji by itself. Digits and signs that are emoji only in sequences do not count.
    private static func isEmoji(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value > 0xFF && scalar.properties.isEmoji && !scalar.properties.isEmojiModifier
    }
}
