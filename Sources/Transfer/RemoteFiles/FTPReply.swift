/// A line of a server's answer (RFC 959, section 4.2).
struct FTPReply: Sendable, Equatable {
    /// Bytes of the text that are kept.
    static let maximumLength = 200

    let code: Int
    /// What the server says besides, without control characters.
    let text: String

    /// - Parameter line: with its line end.
    /// - Returns: `nil` for a line that ends no answer, as those between the first and the last of several.
    init?(_ line: some Collection<UInt8>) {
        let digits = line.prefix(3)
        guard digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let rest = line.dropFirst(3)
        guard rest.first != UInt8(ascii: "-") else { return nil }
        code = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        text = String(
            decoding: rest.filter { $0 >= 0x20 && $0 != 0x7F }.drop { $0 == 0x20 }.prefix(Self.maximumLength),
            as: UTF8.self)
    }

    /// A refusal that speaks of encryption (RFC 4217, section 10): with TLS there may be none.
    var demandsTLS: Bool {
        let words = text.lowercased()
        return [421, 503, 521, 522, 530, 534].contains(code)
            && ["tls", "ssl", "encrypt"].contains { words.firstRange(of: $0) != nil }
    }

    /// The number that an answer to SIZE holds (213; RFC 3659, section 4).
    var size: Int64? { code == 213 ? Int64(digits: text) : nil }

    /// The bytes that a transfer which now begins is to bring, where the server says so in the common form: `(1234 bytes`.
    var announcedSize: Int64? {
        guard (100..<200).contains(code), let words = text.ranges(of: " bytes").last,
            let opening = text[..<words.lowerBound].utf8.lastIndex(of: UInt8(ascii: "("))
        else { return nil }
        return Int64(digits: text[opening..<words.lowerBound].dropFirst())
    }
}
