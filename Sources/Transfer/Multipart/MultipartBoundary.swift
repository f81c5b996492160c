/// The line that parts the parts (RFC 2046, section 5.1.1).
public struct MultipartBoundary: Sendable, Equatable, CustomStringConvertible {
    /// Bytes, by RFC 2046.
    public static let maximumLength = 70

    /// Without the hyphens that precede it in a body.
    public let text: String

    /// Makes a random one: 64 random bits, so that nothing in a body can be taken for it but by intent.
    public init() {
        let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        text = "dld.boundary." + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Takes a given one; that no part holds it is for the caller to know.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for anything but 1 to 70 of the characters that RFC 2046 allows
    ///   (letters, digits, space and `'()+_,-./:=?`), or a space at the end.
    public init(_ text: String) throws(TransferError) {
        let bytes = text.utf8
        guard (1...Self.maximumLength).contains(bytes.count), bytes.last != 0x20,
            bytes.allSatisfy({ $0.isASCIILetterOrDigit || "'()+_,-./:=? ".utf8.contains($0) })
        else { throw TransferError(.invalidRequest, "a multipart boundary is 1 to 70 of the characters of RFC 2046") }
        self.text = text
    }

    public var description: String { text }

    /// As a parameter of a media type: quoted where it is no token (RFC 2045, section 5.1).
    var parameter: String {
        text.utf8.allSatisfy { $0.isASCIILetterOrDigit || "'+_-.".utf8.contains($0) }
            ? "boundary=\(text)" : "boundary=\"\(text)\""
    }

    /// What begins a part.
    var opening: String { "--\(text)\r\n" }

    /// What ends the last part.
    var closing: String { "--\(text)--\r\n" }
}
