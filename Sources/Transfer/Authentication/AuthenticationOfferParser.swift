/// Reads challenges member by member, a member being what lies between two commas.
///
/// The comma parts challenges as well as the parameters of one, so that only what follows a word says whether the
/// word begins a challenge or names a parameter (RFC 9110, section 11.6.1).
struct AuthenticationOfferParser {
    private(set) var offers: [AuthenticationOffer] = []

    private var bytes: [UInt8] = []
    private var index = 0
    /// Whether parameters that come now belong to the last offer.
    private var takesParameters = false

    /// - Parameter line: a field line's value. A quotation that does not end, ends with its line.
    mutating func add(_ line: String) {
        bytes = Array(line.utf8)
        index = 0
        while true {
            skip { $0 == UInt8(ascii: ",") || Self.isSpace($0) }
            guard index < bytes.count, readMember() else { return }
        }
    }

    /// - Returns: whether there is to be another: `false` once there are offers enough.
    private mutating func readMember() -> Bool {
        let word = take(while: Self.isTokenByte)
        let isFollowedBySpace = index < bytes.count && Self.isSpace(bytes[index])
        skip(while: Self.isSpace)
        if !word.isEmpty, index < bytes.count, bytes[index] == UInt8(ascii: "=") {
            readValue(of: word)
        } else if !word.isEmpty, isFollowedBySpace || isAtEndOfMember {
            // A challenge too many is not to leave its parameters to the last that there was room for.
            takesParameters = offers.count < AuthenticationOffer.maximumOffers
            guard takesParameters else { return false }
            offers.append(AuthenticationOffer(scheme: String(decoding: word, as: UTF8.self).lowercased()))
            readDetails()
        } else {
            // Perhaps a challenge of a kind unknown: what follows could be a parameter of it.
            takesParameters = false
        }
        skipRestOfMember()
        return true
    }

    /// What stands behind a scheme: a token68, the first parameter or nothing.
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

    /// With the index at the equals sign; space around it is bad but to be borne (RFC 9110, section 5.6.3).
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
        // A value with something behind it is not known to be whole.
        guard let value, isAtEndOfMember, takesParameters,
            offers[offers.count - 1].parameters.count < AuthenticationOffer.maximumParameters
        else { return }
        let key = String(decoding: name, as: UTF8.self).lowercased()
        if offers[offers.count - 1].parameters[key] == nil {
            offers[offers.count - 1].parameters[key] = String(decoding: value, as: UTF8.self)
        }
    }

    /// A quoted-string (RFC 9110, section 5.6.4).
    ///
    /// - Returns: what it says; `nil` if it does not end or holds a control character.
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

    /// To the next comma that is not quoted.
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

    /// RFC 9110, section 5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        byte.isASCIILetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }

    /// RFC 9110, section 11.2, without the equals signs at its end.
    private static func isToken68Byte(_ byte: UInt8) -> Bool {
        byte.isASCIILetterOrDigit || "-._~+/".utf8.contains(byte)
    }
}
