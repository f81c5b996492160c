public import HTTPMessages

extension ResponseHead: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The status line, as in `HTTP/1.1 200 OK` (RFC 9112, section 4).
    public var description: String {
        ReadableText.line("HTTP/\(version) \(status)\(reason.isEmpty ? "" : " ")\(reason)")
    }

    /// The status line, and a line for each field. The value of a field that may be secret, such as `Set-Cookie`, is
    /// replaced by `…`, and so are the secrets of URLs.
    public var debugDescription: String { ResponseText.lines(description, headerFields).joined(separator: "\n") }

    /// A mirror without children, so that `dump` writes the ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
