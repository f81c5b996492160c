/// A parser for authentication challenges. It reads one list member (the text between two commas) at a time.
///
/// A comma separates challenges as well as the parameters of one challenge. Only the text after a word decides whether
/// the word begins a challenge or names a parameter (RFC 9110, section 11.6.1).
struct AuthenticationOfferParser {
    private(set) var offers: [AuthenticationOffer] = []

    private var bytes: [UInt8] = []
    private var index = 0
    /// Whether the next parameters belong to the last challenge.
    private var takesParameters = false

    /// Parses a field line and appends its challenges to ``offers``.
    ///
    /// - Parameter line: The value of a field line. An unterminated quoted string ends at the end of the line.
    mutating func add(_ line: String) {
        bytes = Array(line.utf8)
        index = 0
        while true {
            skip { $0 == UInt8(ascii: ",") || Self.isSpace($0) }
            guard index < bytes.count, readMember() else { return }
        }
    }

    /// Reads one list member.
    ///
    /// - Returns: Whether to read another member; `false` once the maximum number of challenges is reached.
    private mutating func readMember() -> Bool {
        let word = take(while: Self.isTokenByte)
        let isFollowedBySpace = index < bytes.count && Self.isSpace(bytes[index])
        skip(while: Self.isSpace)
        if !word.isEmpty, index < bytes.count, bytes[index] == UInt8(ascii: "=") {
            readValue(of: word)
        } else if !word.isEmpty, isFollowedBySpace || isAtEndOfMember {
            // Parameters of a challenge beyond the maximum must not be added to the last challenge kept.
            takesParameters = offers.count < AuthenticationOffer.maximumOffers
            guard takesParameters else { return false }
            offers.append(AuthenticationOffer(scheme: String(decoding: word, as: UTF8.self).lowercased()))
            readDetails()
        } else {
            // This may be an unknown form of challenge. The members that follow could be its parameters.
            takesParameters = false
        }
        skipRestOfMember()
        return true
    }

    /// Reads the text after a scheme: a token68, the first parameter or nothing.
    private mutating func readDetails() {
        guard !isAtEndOfMember else { return }
        let start = index
        let token = take(while: Self.isToken68Byte)
        let end = take { $0 == UInt8(ascii: "=") }
        skip(while: Self.isSpace)
        if !token.isEmpty, isAtEndOfMember {
            offers[offers.count - 1].token68 = String(decoding: token + end, as: UTF8.self)
            takesParameters = false
            return
        }
        index = start
        let name = take(while: Self.isTokenByte)
        skip(while: Self.isSpace)
        guard !name.isEmpty, index < bytes.count, bytes[index] == UInt8(ascii: "=") else { return }
        readValue(of: name)
    }

    /// Reads a parameter's value. The index is at the equals sign. Spaces around the sign are tolerated (RFC 9110,
    /// section 5.6.3).
    private mutating func readValue(of name: ArraySlice<UInt8>) {
        index += 1
        skip(while: Self.isSpace)
        let value: [UInt8]?
        if index < bytes.count, bytes[index] == UInt8(ascii: "\"") {
            value = readQuotation()
        } else {
            let word = take(while: Self.isTokenByte)
            value = word.isEmpty ? nil : Array(word)
        }
        skip(while: Self.isSpace)
        // Trailing text after a value means that the value may be incomplete.
        guard let value, isAtEndOfMember, takesParameters,
            offers[offers.count - 1].parameters.count < AuthenticationOffer.maximumParameters
        else { return }
        let key = String(decoding: name, as: UTF8.self).lowercased()
        if offers[offers.count - 1].parameters[key] == nil {
            offers[offers.count - 1].parameters[key] = String(decoding: value, as: UTF8.self)
        }
    }

    /// Reads a quoted-string (RFC 9110, section 5.6.4).
    ///
    /// - Returns: The unescaped content; `nil` if the string is unterminated or contains a control character.
    private mutating func readQuotation() -> [UInt8]? {
        var value: [UInt8] = []
        var isSound = true
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            guard index < bytes.count else { return nil }
            if bytes[index] < 0x20 && bytes[index] != 0x09 || bytes[index] == 0x7F { isSound = false }
            value.append(bytes[index])
            index += 1
        }
        guard index < bytes.count else { return nil }
        index += 1
        return isSound ? value : nil
    }

    private var isAtEndOfMember: Bool { index >= bytes.count || bytes[index] == UInt8(ascii: ",") }

    /// Skips to the next comma outside a quoted string.
    private mutating func skipRestOfMember() {
        while !isAtEndOfMember {
            if bytes[index] == UInt8(ascii: "\"") {
                _ = readQuotation()
            } else {
                index += 1
            }
        }
    }

    private mutating func skip(while condition: (UInt8) -> Bool) { _ = take(while: condition) }

    private mutating func take(while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = index
        while index < bytes.count, condition(bytes[index]) { index += 1 }
        return bytes[start..<index]
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether a byte may occur in a token (RFC 9110, section 5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        byte.isASCIILetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }

    /// Whether a byte may occur in a token68, apart from the equals signs at its end (RFC 9110, section 11.2).
    private static func isToken68Byte(_ byte: UInt8) -> Bool {
        byte.isASCIILetterOrDigit || "-._~+/".utf8.contains(byte)
    }
}
