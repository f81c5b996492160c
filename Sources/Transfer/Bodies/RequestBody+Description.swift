extension RequestBody: CustomStringConvertible, CustomReflectable {
    /// The kind and the size of the body, as in `data, 12 bytes`. The contents are left out, since they may be secret.
    public var description: String {
        switch self {
        case .none: "no body"
        case .data(let bytes): "data, \(ReadableText.bytes(bytes.count))"
        case .file(let source): "file, \(ReadableText.bytes(source.identity.size))"
        case .framed(let framed): framed.description
        case .stream(let stream): stream.length.map { "stream, \(ReadableText.bytes($0))" } ?? "stream of unknown size"
        }
    }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension FramedFile: CustomStringConvertible, CustomReflectable {
    /// The size of the whole body, as in `framed file, 12 bytes`. The contents are left out, since they may be secret.
    public var description: String { "framed file, \(ReadableText.bytes(length))" }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
