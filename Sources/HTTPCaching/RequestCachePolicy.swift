/// The permitted source of a response: the cache, the server, or either.
public enum RequestCachePolicy: Sendable {
    /// The HTTP rules: a fresh stored response is used, a stale one is validated with the server (RFC 9111).
    case useProtocolCachePolicy
    /// The server only.
    case reloadIgnoringLocalCacheData
    /// The stored response, whatever its age; without one, the server.
    case returnCacheDataElseLoad
    /// The stored response, whatever its age; without one, a failure. The server is not contacted.
    case returnCacheDataDontLoad
    /// The stored response, after the server has validated it; otherwise the server's new response.
    case reloadRevalidatingCacheData
}
