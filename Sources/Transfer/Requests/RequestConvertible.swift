/// What a URL can be made of: text, or a value that stands for a URL.
public protocol URLConvertible: Sendable {
    /// - Throws: why it is none; the request then fails with that.
    func asURLText() throws(TransferError) -> String
}

extension String: URLConvertible {
    public func asURLText() -> String { self }
}

/// What a request can be made of.
public protocol RequestConvertible: Sendable {
    /// - Throws: why there is none; the request then fails with that.
    func asRequest() throws(TransferError) -> TransferRequest
}

extension TransferRequest: RequestConvertible {
    public func asRequest() -> TransferRequest { self }
}

extension String: RequestConvertible {
    /// `GET` of the URL that it is.
    public func asRequest() -> TransferRequest { TransferRequest(url: self) }
}
