/// Sanitised file names made from the suggestions of servers and URLs. They are safe for file systems, shells and users
/// (RFC 6266, section 4.3).
///
/// The functions work on scalars and bytes: a combining mark forms one `Character` with the slash or dot before it, but
/// a file system still interprets that slash or dot.
package enum SafeFileName {
    /// The maximum length of a name in Linux file systems, in bytes.
    static let maximumLength = 255
    /// The maximum length of a suffix that is preserved when a name is cut, in bytes.
    private static let longestSuffix = 16

    /// The name of a file for which there is no suggestion.
    static let fallback = "download"

    /// Returns a sanitised name.
    ///
    /// - Parameter suggestion: the suggestion as received; any text is allowed.
    /// - Returns: the last segment after `/` or `\`, without problematic characters; `nil` if nothing is left.
    static func make(from suggestion: String) -> String? {
        var scalars = Array(suggestion.unicodeScalars)
        if let separator = scalars.lastIndex(where: { $0 == "/" || $0 == "\\" }) { scalars.removeFirst(separator + 1) }
        scalars.removeAll(where: isUnseen)
        scalars = Array(scalars.drop { $0 == "." || $0 == " " || $0 == "-" || $0 == "~" })
        let name = shortened(text(scalars))
        guard !name.isEmpty else { return nil }
        return isDevice(name) ? shortened("_" + name) : name
    }

    /// Suffixes of programs on servers, which say nothing about the file that they send.
    private static let programs: Set<String> = ["php", "asp", "aspx", "jsp", "cgi", "do", "ashx", "action"]
    /// The maximum length of the suffix of a kind of file, in bytes.
    private static let longestKind = 10

    /// Returns whether the name ends in a suffix that says what kind of file it is: letters and digits, at least one
    /// letter. The suffix of a program on the server is none.
    package static func saysKind(_ name: String) -> Bool {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot != name.utf8.startIndex else { return false }
        let suffix = name[name.utf8.index(after: dot)...].lowercased()
        return (1...longestKind).contains(suffix.utf8.count) && !programs.contains(suffix)
            && suffix.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
            && suffix.utf8.contains { $0 >= 0x61 }
    }

    /// Returns the name from a URL or from the one to which it was redirected: the latter where it alone says what kind
    /// of file it is.
    package static func chosen(fromURL name: String, redirected: String?) -> String {
        guard let redirected, saysKind(redirected), !saysKind(name) else { return name }
        return redirected
    }

    /// Returns the sanitised last segment of the URL's path; ``fallback`` if there is none.
    static func make(fromURL url: String) -> String {
        let bytes = Array(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8),
            let slash = bytes[(colon + 3)...].lastIndex(of: UInt8(ascii: "/"))
        else { return fallback }
        return make(from: String(decoding: decoded(bytes[(slash + 1)...]), as: UTF8.self)) ?? fallback
    }

    /// Returns `name` cut to at most `count` bytes, between characters if at least one fits.
    static func cut(_ name: String, to count: Int) -> String {
        var kept = name
        while kept.utf8.count > count, !kept.isEmpty { kept.removeLast() }
        guard kept.isEmpty else { return kept }
        // The first character alone is longer: as many of its scalars are kept as fit.
        var length = 0
        return text(
            name.unicodeScalars.prefix { scalar in
                length += UTF8.width(scalar)
                return length <= count
            })
    }

    /// Returns the name cut to the maximum length, with its suffix preserved, and without the trailing dots and spaces
    /// that Windows would drop.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > maximumLength else { return withoutTail(name) }
        let suffix = suffix(of: name)
        let stem = String(decoding: name.utf8.dropLast(suffix.utf8.count), as: UTF8.self)
        return withoutTail(cut(stem, to: maximumLength - suffix.utf8.count) + suffix)
    }

    private static func withoutTail(_ name: String) -> String {
        var scalars = Array(name.unicodeScalars)
        while let last = scalars.last, last == "." || last == " " { scalars.removeLast() }
        return text(scalars)
    }

    /// Returns the suffix, such as `.iso` or `.tar.gz`; empty if there is none.
    private static func suffix(of name: String) -> String {
        let bytes = Array(name.utf8)
        guard var dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, bytes.count - dot <= longestSuffix else {
            return ""
        }
        if bytes[..<dot].count > 4, bytes[..<dot].suffix(4).elementsEqual(".tar".utf8) { dot -= 4 }
        return String(decoding: bytes[dot...], as: UTF8.self)
    }

    /// Whether a scalar is invisible or misleading: control characters, line separators, marks that change the writing
    /// direction, default-ignorable code points (Default_Ignorable_Code_Point, UAX #44), and the replacement for bytes
    /// that are not text (U+FFFD).
    private static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x7F { return scalar.value < 0x20 }
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        // Format characters that enclose the digits or letters after them are visible (Prepended_Concatenation_Mark).
        case .format: return !spanning.contains(scalar.value)
        // U+2800 is BRAILLE PATTERN BLANK.
        default: return scalar.value == 0xFFFD || scalar.value == 0x2800
        }
    }

    private static let spanning: Set<UInt32> = [
        0x0600, 0x0601, 0x0602, 0x0603, 0x0604, 0x0605, 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD,
    ]

    /// Whether Windows reserves the name for a device, which it does with any suffix.
    private static func isDevice(_ name: String) -> Bool {
        let stem = name.utf8.prefix { $0 != UInt8(ascii: ".") }.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }
        if ["CON", "PRN", "AUX", "NUL"].contains(where: { stem.elementsEqual($0.utf8) }) { return true }
        return stem.count == 4 && (0x31...0x39).contains(stem[3])
            && (stem.starts(with: "COM".utf8) || stem.starts(with: "LPT".utf8))
    }

    private static func text(_ scalars: some Sequence<Unicode.Scalar>) -> String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    /// Returns the bytes with percent-encoding removed (RFC 3986, section 2.1). A percent sign without two hexadecimal
    /// digits is kept.
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = digit(rest.first), let low = digit(rest.dropFirst().first) {
                decoded.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return decoded
    }

    private static func digit(_ byte: UInt8?) -> UInt8? {
        switch byte {
        case .some(let byte) where (0x30...0x39).contains(byte): byte - 0x30
        case .some(let byte) where (0x41...0x46).contains(byte & 0xDF): (byte & 0xDF) - 0x37
        default: nil
        }
    }
}
