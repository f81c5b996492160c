/// What a request may be answered with: the cache, the server, or either.
public enum RequestCachePolicy: Sendable {
    /// What HTTP says: a fresh response is used, a stale one asked about (RFC 9111).
    case useProtocolCachePolicy
    /// The server alone.
    case reloadIgnoringLocalCacheData
    /// What is stored, whatever its age; otherwise the server.
    case returnCacheDataElseLoad
    /// What is stored, whatever its age; otherwise a failure, without a word to the server.
    case returnCacheDataDontLoad
    /// What is stored, once the server has said that it is still right; otherwise the server's answer.
    case reloadRevalidatingCacheData
}
