import TaskModel

/// Makes a stranger's text fit to be shown: nothing in it steers the terminal or turns the direction of writing.
enum Escape {
    /// C0 and C1 controls, separators of lines, bidirectional and invisible marks as visible escapes. What joins emoji to
    /// one, and what asks for their pictures, stays.
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

    /// JSON of the same value in which the same marks are `\uXXXX` (RFC 8259, section 7): they can stand within strings
    /// alone.
    ///
    /// - Parameter json: as an encoder writes it, with the controls of C0 escaped already.
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

    /// Line ends and spaces between values are the encoder's.
    private static func isHiddenInJSON(_ scalar: Unicode.Scalar) -> Bool { scalar.value >= 0x7F && scalar.isHidden }

    /// Whether it asks for the picture of what is before it, or joins that to the next picture.
    private static func belongsToEmoji(at index: Int, in scalars: [Unicode.Scalar]) -> Bool {
        if scalars[index].value != 0xFE0F { return joinsEmoji(at: index, in: scalars) }
        // Digits have a picture in a keycap alone.
        guard index > 0, scalars[index - 1].properties.isEmoji else { return false }
        return scalars[index - 1].value > 0x7F || index + 1 < scalars.count && scalars[index + 1].value == 0x20E3
    }

    /// Whether a zero-width joiner stands between two emoji (UTS #51, ED-16).
    private static func joinsEmoji(at index: Int, in scalars: [Unicode.Scalar]) -> Bool {
        guard scalars[index].value == 0x200D, index + 1 < scalars.count, isEmoji(scalars[index + 1])
        else { return false }
        // A colour of skin, and what asks for the emoji's picture, belong to the emoji before them.
        let before = scalars[..<index].last { !$0.properties.isEmojiModifier && $0.value != 0xFE0F }
        return before.map(isEmoji) ?? false
    }

    /// Digits and signs that are emoji in company alone are none here.
    private static func isEmoji(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value > 0xFF && scalar.properties.isEmoji && !scalar.properties.isEmojiModifier
    }
}
