public import FoundationEssentials

/// A serializer that decodes the body as text. The text of an empty body is empty.
///
/// Without an encoding of the caller, the encoding is determined as for web pages (WHATWG Encoding Standard, section
/// 6): by a byte order mark of UTF-8 or UTF-16, otherwise by the charset of the response. It is UTF-8 if there is
/// neither. The byte order mark is no part of the text.
///
/// All charsets that the system's iconv(3) knows are supported. An unknown charset and bytes that are invalid in the
/// charset are errors (``TransferError/Code/serializationFailed``).
public struct StringSerializer: ResponseSerializer {
    private enum Choice {
        case response
        case named(String)
        case encoding(String.Encoding)
    }

    private let choice: Choice

    /// Creates a serializer.
    ///
    /// - Parameter encoding: the encoding of the text, whatever the response says; `nil` for that of the response.
    public init(encoding: String.Encoding? = nil) {
        choice = encoding.map { .encoding($0) } ?? .response
    }

    /// Creates a serializer.
    ///
    /// - Parameter charset: the name of the encoding of the text, as in `Content-Type`, whatever the response says.
    public init(charset: String) {
        choice = .named(charset)
    }

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> String {
        let charset: Charset? =
            switch choice {
            case .response: Charset(markOf: data) ?? head?.charset.map { Charset($0) } ?? .utf8
            case .named(let name): Charset(name)
            case .encoding(let encoding): Charset(encoding)
            }
        guard let charset else { throw TransferError(.serializationFailed, "the encoding is not supported") }
        return try charset.text(of: data)
    }
}
