import Curl
import Glibc
import HTTPTypes

/// The session cache's part in one exchange of a data task: lookup, revalidation, storage and invalidation.
struct CachedExchange {
    private let cache: ResponseCache
    private let url: String
    private let judgement: CacheEvaluation
    /// Whether libcurl decodes the content coding, which it does for requests that set no `Accept-Encoding` field.
    private let decodes: Bool
    /// Whether the response is neither served from the cache nor stored in it. It can still invalidate a stored
    /// response.
    private let isBypassed: Bool
    private let stored: CachedResponse?
    /// The time of the request, in seconds since 1970.
    private let requestedAt: Int64
    private var answeredAt: Int64

    enum Answer {
        /// A stored response that can be used.
        case stored(CachedResponse)
        /// A request to the server, with these additional fields.
        case server(HTTPFields)
        /// The absence of a response: the cache has none, and the request forbids contact with the server.
        case none
    }

    /// The source of the response.
    let answer: Answer

    enum Finding {
        /// A new response from the server.
        case new
        /// A stored response that the server confirmed.
        case renewed(CachedResponse)
        /// A confirmation (304) that does not match the stored response. The request must be repeated without
        /// conditions.
        case mistaken
    }

    /// Creates the cache state of an exchange and looks the URL up.
    ///
    /// - Parameters:
    ///   - lines: the field lines that are sent; see ``SentFields/lines(of:_:engineFields:isAuthorized:)``.
    ///   - sendsBody: whether the request has a body.
    ///   - reloads: whether a stored response must not be used, whatever the policy is.
    /// - Returns: `nil` if the session has no cache.
    init?(
        of request: TransferRequest, at url: CurlURL, lines: [String], sendsBody: Bool, reloads: Bool,
        _ configuration: SessionConfiguration
    ) {
        guard let cache = configuration.responseCache else { return nil }
        self.cache = cache
        self.url = url.text
        requestedAt = Int64(time(nil))
        answeredAt = requestedAt
        // A response to a request body depends on that body. The cache key contains neither the client's identity nor
        // the trusted certificates.
        isBypassed =
            request.method == .get && sendsBody || request.identity != nil || request.caCertificates != nil
            || request.trustsAnyServer
        let decodes = Self.decodes(request)
        self.decodes = decodes

        var fields = SentFields.fields(lines)
        // The value stands for all codings that libcurl can decode. It is only compared with itself.
        if decodes { fields[.acceptEncoding] = "*" }
        let policy = reloads ? .reloadIgnoringLocalCacheData : Self.policy(of: request, configuration)
        judgement = CacheEvaluation(method: request.method, fields: fields, policy: policy)

        let found = isBypassed ? nil : cache.response(for: url.text)
        // A response stored with its coding does not serve a request that expects a decoded body, nor the reverse.
        stored = found.flatMap { $0.head.contentCoding == nil || decodes ? $0 : nil }
        answer =
            switch (judgement.verdict(stored: stored, now: requestedAt), stored) {
            case (.useStored, let stored?): .stored(stored)
            case (.revalidate(let conditions), _): .server(conditions)
            case (.fail, _): .none
            case (.load, _), (.useStored, nil): .server([:])
            }
    }

    static func policy(of request: TransferRequest, _ configuration: SessionConfiguration) -> RequestCachePolicy {
        request.cachePolicy ?? configuration.requestCachePolicy
    }

    /// Whether libcurl decodes the body. It does not if the request sets `Accept-Encoding` or `Range` itself.
    static func decodes(_ request: TransferRequest) -> Bool {
        request.headerFields[.acceptEncoding] == nil && request.headerFields[.range] == nil
    }

    // MARK: Heads

    /// Examines each head from the server, which may invalidate the stored response (RFC 9111, section 4.4).
    func didReceiveHead(_ head: ResponseHead) {
        if judgement.invalidates(status: head.status) { cache.remove(for: url) }
    }

    /// Examines the head of the final response.
    mutating func didReceiveFinalHead(_ head: ResponseHead) -> Finding {
        answeredAt = Int64(time(nil))
        guard head.status == 304, let stored, case .server(let conditions) = answer, !conditions.isEmpty else {
            return .new
        }
        guard let renewed = judgement.freshened(stored, by: head, requestedAt: requestedAt, now: answeredAt) else {
            cache.remove(for: url)
            return .mistaken
        }
        cache.store(renewed, for: url)
        return .renewed(renewed)
    }

    // MARK: Complete responses

    /// Returns the cache entry for a complete response, if it may be stored.
    ///
    /// - Parameter body: the body as delivered to the caller.
    func proposal(for head: ResponseHead, body: [UInt8]) -> CachedResponse? {
        guard !isBypassed, decodes || head.contentCoding == nil, !Self.isRedirectOrChallenge(head.status),
            Self.isWhole(head, count: body.count)
        else { return nil }
        // An array that grew in small steps may occupy twice the memory of its contents.
        let body = body.capacity > body.count + body.count / 8 ? body.withUnsafeBufferPointer { Array($0) } : body
        return judgement.stored(head, body: body, requestedAt: requestedAt, now: answeredAt)
    }

    /// Stores the entry for a complete response. Without an entry, a newer response removes the stored one.
    func keep(_ response: CachedResponse?, of head: ResponseHead) {
        if let response {
            cache.store(response, for: url)
        } else if !isBypassed, judgement.method == .get, !judgement.isPartialOrConditional,
            (200..<300).contains(head.status) || head.status == 404 || head.status == 410
        {
            cache.remove(for: url)
        }
    }

    /// Whether the status is a redirect or a challenge. These are handled before the cache; a stored one would be
    /// delivered as an ordinary response.
    private static func isRedirectOrChallenge(_ status: Int) -> Bool {
        RedirectRule.isRedirect(status) || status == 401 || status == 407
    }

    /// Whether the response stated where its body ends, so that libcurl detects truncation. The end of a connection
    /// does not state it. Nor does the end of an HTTP/2 stream, which libcurl 7.88 may take for complete although it
    /// was reset.
    private static func isWhole(_ head: ResponseHead, count: Int) -> Bool {
        if head.isEmptySuccess { return count == 0 }
        if let length = head.contentLength { return head.contentCoding != nil || length == Int64(count) }
        return head.version.hasPrefix("1") && head.value(of: "transfer-encoding") != nil
    }
}

extension TransferError {
    static let notCached = TransferError(
        .notCached, "no stored response can be used, and the request must not be sent to the server")
}
