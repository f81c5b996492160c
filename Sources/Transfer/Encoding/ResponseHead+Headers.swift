public import HTTPMessages

extension ResponseHead {
    /// All header fields as text, in order, for which no import of `HTTPTypes` is needed. Several fields may have the
    /// same name.
    public var headers: HTTPHeaders { HTTPHeaders(headerFields) }
}
