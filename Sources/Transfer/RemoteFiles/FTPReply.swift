/// A line of an FTP server's reply (RFC 959, section 4.2).
struct FTPReply: Sendable, Equatable {
    /// The maximum length of the stored text, in bytes.
    static let maximumLength = 200

    let code: Int
    /// The text after the code, without control characters.
    let text: String

    /// Parses the last line of a reply.
    ///
    /// - Parameter line: The line, with its line ending.
    /// - Returns: `nil` for a line that does not end a reply, such as the first or a middle line of a multi-line reply.
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

    /// Whether the reply is a refusal that mentions encryption (RFC 4217, section 10). With TLS, the server may accept.
    var demandsTLS: Bool {
        let words = text.lowercased()
        return [421, 503, 521, 522, 530, 534].contains(code)
            && ["tls", "ssl", "encrypt"].contains { words.firstRange(of: $0) != nil }
    }

    /// The file size in a reply to SIZE (213; RFC 3659, section 4).
    var size: Int64? { code == 213 ? Int64(digits: text) : nil }

    /// The size in bytes announced in a preliminary reply, if it has the common form `(1234 bytes`.
    var announcedSize: Int64? {
        guard (100..<200).contains(code), let words = text.ranges(of: " bytes").last,
            let opening = text[..<words.lowerBound].utf8.lastIndex(of: UInt8(ascii: "("))
        else { return nil }
        return Int64(digits: text[opening..<words.lowerBound].dropFirst())
    }
}
