/// A type that can be converted to a URL: text, or a value that represents a URL.
public protocol URLConvertible: Sendable {
    /// Returns the text of the URL.
    ///
    /// - Throws: the reason why there is none; the request then fails with it.
    func asURLText() throws(TransferError) -> String
}

extension String: URLConvertible {
    public func asURLText() -> String { self }
}

/// A type that can be converted to a request.
public protocol RequestConvertible: Sendable {
    /// Returns the request.
    ///
    /// - Throws: the reason why there is none; the request then fails with it.
    func asRequest() throws(TransferError) -> TransferRequest
}

extension TransferRequest: RequestConvertible {
    public func asRequest() -> TransferRequest { self }
}

extension String: RequestConvertible {
    /// Returns a `GET` request for the URL in the text.
    public func asRequest() -> TransferRequest { TransferRequest(url: self) }
}
