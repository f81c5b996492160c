/// The boundary between the parts of a form (RFC 2046, section 5.1.1).
public struct MultipartBoundary: Sendable, Equatable, CustomStringConvertible {
    /// The maximum length in bytes, by RFC 2046.
    public static let maximumLength = 70

    /// The boundary without the hyphens that precede it in a body.
    public let text: String

    /// Creates a random boundary of 64 random bits, so that a body can only contain it by intent.
    public init() {
        let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        text = "dld.boundary." + String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Creates a boundary from a given text. The caller has to know that no part contains it.
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

    /// The parameter of a media type: quoted if the text is not a token (RFC 2045, section 5.1).
    var parameter: String {
        text.utf8.allSatisfy { $0.isASCIILetterOrDigit || "'+_-.".utf8.contains($0) }
            ? "boundary=\(text)" : "boundary=\"\(text)\""
    }

    /// The delimiter before a part.
    var opening: String { "--\(text)\r\n" }

    /// The delimiter after the last part.
    var closing: String { "--\(text)--\r\n" }
}
