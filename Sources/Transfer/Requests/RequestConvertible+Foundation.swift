import FoundationEssentials

extension URL: URLConvertible {
    public func asURLText() -> String { absoluteString }
}

extension URL: RequestConvertible {
    /// `GET` of it.
    public func asRequest() -> TransferRequest { TransferRequest(url: absoluteString) }
}
