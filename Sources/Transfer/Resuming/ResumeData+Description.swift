extension ResumeData: CustomStringConvertible, CustomDebugStringConvertible {
    /// The number of bytes that are kept, as in `12 of 24 bytes`. The URL and other contents may be secret, so they are
    /// left out.
    public var description: String { ReadableText.bytes(ranges.count, of: total) }

    /// The ``description``.
    public var debugDescription: String { description }
}

extension ResumeData: CustomReflectable {
    /// A mirror without children, so that `dump` writes the ``description``, which contains no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
