public import FoundationEssentials

extension URL: URLConvertible {
    public func asURLText() -> String { absoluteString }
}

extension URL: RequestConvertible {
    /// Returns a `GET` request for the URL.
    public func asRequest() -> TransferRequest { TransferRequest(url: absoluteString) }
}
