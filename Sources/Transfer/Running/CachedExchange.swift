import Curl
import Glibc
import HTTPTypes

/// What a session's cache has to do with one exchange of a data task: what it answers, asks about, keeps and drops.
struct CachedExchange {
    private let cache: ResponseCache
    private let url: String
    private let judgement: CacheJudgement
    /// The body is taken out of its content coding, as it is for requests that say nothing of codings.
    private let decodes: Bool
    /// Neither answered from the cache nor stored in it; what it says may still mean that something is to go.
    private let isBypassed: Bool
    private let stored: CachedResponse?
    /// Seconds since 1970.
    private let requestedAt: Int64
    private var answeredAt: Int64

    enum Answer {
        /// Is there.
        case stored(CachedResponse)
        /// Is the server's, who is to be asked with these fields too.
        case server(HTTPFields)
        /// The request forbids what would bring one.
        case none
    }

    /// What to do.
    let answer: Answer

    enum Finding {
        /// The answer is the server's.
        case new
        /// The server says that what is stored is right.
        case renewed(CachedResponse)
        /// It says so of something else than what is stored: it is to be asked without conditions.
        case mistaken
    }

    /// - Parameters:
    ///   - lines: those that go out; see ``SentFields/lines(of:_:engineFields:isAuthorized:)``.
    ///   - sendsBody: the request has one.
    ///   - reloads: whatever the policy says, the server alone can answer.
    /// - Returns: `nil` where the session has no cache.
    init?(
        of request: TransferRequest, at url: CurlURL, lines: [String], sendsBody: Bool, reloads: Bool,
        _ configuration: SessionConfiguration
    ) {
        guard let cache = configuration.responseCache else { return nil }
        self.cache = cache
        self.url = url.text
        requestedAt = Int64(time(nil))
        answeredAt = requestedAt
        // An answer to a body belongs to that body. Whom a client shows its identity to, and whom it trusts, is no part
        // of what answers are stored by.
        isBypassed = request.method == .get && sendsBody || request.identity != nil || request.caCertificates != nil
        let decodes = Self.decodes(request)
        self.decodes = decodes

        var fields = SentFields.fields(lines)
        // Only ever compared with itself: it stands for all that libcurl can decode.
        if decodes { fields[.acceptEncoding] = "*" }
        if let cookies = ExchangeCookies.field(for: request, at: url, configuration, now: requestedAt) {
            fields[.cookie] = cookies
        }
        let policy = reloads ? .reloadIgnoringLocalCacheData : Self.policy(of: request, configuration)
        judgement = CacheJudgement(method: request.method, fields: fields, policy: policy)

        let found = isBypassed ? nil : cache.response(for: url.text)
        // One that is wanted as it was sent is no other's who wants it decoded, nor the other way round.
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

    /// Whether libcurl takes the body out of its coding: not for those who ask for a coding, or a part, themselves.
    static func decodes(_ request: TransferRequest) -> Bool {
        request.headerFields[.acceptEncoding] == nil && request.headerFields[.range] == nil
    }

    // MARK: Heads

    /// Any head of a server's: it may mean that what is stored is right no longer (RFC 9111, section 4.4).
    func hear(_ head: ResponseHead) {
        if judgement.invalidates(status: head.status) { cache.remove(for: url) }
    }

    /// The head of the final answer.
    mutating func take(_ head: ResponseHead) -> Finding {
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

    // MARK: Whole answers

    /// - Parameter body: as it was handed on.
    /// - Returns: what may be stored.
    func proposal(for head: ResponseHead, body: [UInt8]) -> CachedResponse? {
        guard !isBypassed, decodes || head.contentCoding == nil, !Self.meansMore(head.status),
            Self.isWhole(head, count: body.count)
        else { return nil }
        // An array that grew byte by byte may hold twice the memory that it says it has.
        let body = body.capacity > body.count + body.count / 8 ? body.withUnsafeBufferPointer { Array($0) } : body
        return judgement.stored(head, body: body, requestedAt: requestedAt, now: answeredAt)
    }

    /// Stores what there is to store of a whole answer; what was stored before goes, since there is something newer.
    func keep(_ response: CachedResponse?, of head: ResponseHead) {
        if let response {
            cache.store(response, for: url)
        } else if !isBypassed, judgement.method == .get, !judgement.isPartialOrConditional,
            (200..<300).contains(head.status) || head.status == 404 || head.status == 410
        {
            cache.remove(for: url)
        }
    }

    /// Redirects and challenges are met before the cache is: from there they would be no more than answers.
    private static func meansMore(_ status: Int) -> Bool {
        RedirectRule.isRedirect(status) || status == 401 || status == 407
    }

    /// Whether the server said where the body ends, so that libcurl could tell a broken one. The end of a connection
    /// does not, nor does that of a stream of HTTP/2, which libcurl 7.88 may take for whole when it was broken off.
    private static func isWhole(_ head: ResponseHead, count: Int) -> Bool {
        if head.isEmptySuccess { return count == 0 }
        if let length = head.contentLength { return head.contentCoding != nil || length == Int64(count) }
        return head.version.hasPrefix("1") && head.value(of: "transfer-encoding") != nil
    }
}

extension TransferError {
    static let notCached = TransferError(.notCached, "no stored answer will do, and the server must not be asked")
}
