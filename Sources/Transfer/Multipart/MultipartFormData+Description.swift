extension MultipartFormData: CustomStringConvertible, CustomReflectable {
    /// The number of parts and the size of the encoded form, as in `form-data, 3 parts, 1204 bytes`, and the
    /// ``failure``, if there is one. The contents are left out, since they may be secret.
    public var description: String {
        let size = "\(ReadableText.count(Int64(parts.count), "part")), \(ReadableText.bytes(contentLength))"
        return ReadableText.line("form-data, \(size)\(failure.map { ", invalid: \($0.message)" } ?? "")")
    }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension EncodedMultipartFormData: CustomStringConvertible, CustomReflectable {
    /// The place and the size of the body, as in `form-data in memory, 1204 bytes`. The contents are left out, since
    /// they may be secret.
    public var description: String {
        switch self {
        case .inMemory(let body, _): "form-data in memory, \(ReadableText.bytes(body.count))"
        case .onDisk(let path, _, let size):
            ReadableText.line("form-data in the file \(path), \(ReadableText.bytes(size))")
        }
    }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
