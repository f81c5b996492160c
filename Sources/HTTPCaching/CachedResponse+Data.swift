public import FoundationEssentials
public import HTTPMessages

extension CachedResponse {
    /// The complete body as `Data`.
    public var data: Data { Data(body) }
}

extension CacheEvaluation {
    /// Returns the response in the form to be stored (section 3), or `nil` if it must not be stored.
    ///
    /// - Parameters:
    ///   - head: the response's head.
    ///   - body: the complete body, decoded as far as `head` states.
    ///   - requestedAt: the time the request was sent, in seconds since 1970.
    ///   - now: the time the response was received, in seconds since 1970.
    @_disfavoredOverload
    public func stored(_ head: ResponseHead, body: Data, requestedAt: Int64, now: Int64) -> CachedResponse? {
        stored(head, body: Array(body), requestedAt: requestedAt, now: now)
    }
}
