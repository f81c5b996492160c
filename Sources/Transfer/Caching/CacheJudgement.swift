import HTTPTypes

/// What a private cache does for one request (RFC 9111): a value without a clock or a store.
public struct CacheJudgement: Sendable {
    /// What to do with a request.
    public enum Verdict: Sendable, Equatable {
        /// Answer with what is stored.
        case useStored
        /// Ask the server with these fields added; a 304 means that the stored one is right, see
        /// ``CacheJudgement/freshened(_:by:requestedAt:now:)``.
        case revalidate(HTTPFields)
        /// Ask the server as though nothing were stored.
        case load
        /// Fail: the request forbids asking, and nothing that it allows is stored.
        case fail
    }

    /// Of the request; only answers to GET are kept.
    public let method: HTTPRequest.Method
    /// Those that are sent, with what the engine adds itself: `Authorization`, `Cookie`, `Accept-Encoding`.
    public let fields: HTTPFields
    /// What the caller wants of the cache.
    public let policy: RequestCachePolicy

    /// Judges for one request, by its method and the fields it goes out with.
    public init(method: HTTPRequest.Method, fields: HTTPFields, policy: RequestCachePolicy = .useProtocolCachePolicy) {
        self.method = method
        self.fields = fields
        self.policy = policy
    }

    // MARK: Before the request

    /// - Parameters:
    ///   - stored: what there is for the request's URL.
    ///   - now: seconds since 1970.
    public func verdict(stored: CachedResponse?, now: Int64) -> Verdict {
        // A part, or an answer to the caller's own condition, is not to be had from here.
        guard method == .get, !isPartialOrConditional else { return policy == .returnCacheDataDontLoad ? .fail : .load }
        let usable = stored.flatMap { $0.matches(fields) ? $0 : nil }
        switch policy {
        case .reloadIgnoringLocalCacheData: return .load
        case .returnCacheDataElseLoad: return usable == nil ? .load : .useStored
        case .returnCacheDataDontLoad: return usable == nil ? .fail : .useStored
        case .reloadRevalidatingCacheData: return usable.map(revalidation) ?? .load
        case .useProtocolCachePolicy: return protocolVerdict(usable, now: now)
        }
    }

    private func protocolVerdict(_ stored: CachedResponse?, now: Int64) -> Verdict {
        let request = CacheControl(fields[values: .cacheControl])
        let onlyIfCached = request.contains("only-if-cached")
        guard let stored, !request.contains("no-store") else { return onlyIfCached ? .fail : .load }
        if isUsable(stored, request: request, now: now) { return .useStored }
        return onlyIfCached ? .fail : revalidation(of: stored)
    }

    /// Whether it may be used without asking (section 4.2, and section 5.2.1 for the request's wishes).
    private func isUsable(_ stored: CachedResponse, request: CacheControl, now: Int64) -> Bool {
        // Pragma counts only for those who do not know Cache-Control (section 5.4).
        let wishes = request.isEmpty ? CacheControl(Self.pragma.map { fields[values: $0] } ?? []) : request
        guard !wishes.contains("no-cache") else { return false }
        let response = CacheControl(stored.head.values(of: "cache-control"))
        // Also with names of fields in its argument, which would be asked about alone: what is allowed is not required.
        guard !response.contains("no-cache") else { return false }

        let (age, lifetime) = (stored.age(now: now), stored.lifetime)
        if let limit = request.seconds("max-age", invalid: 0), age > limit { return false }
        if let margin = request.seconds("min-fresh", invalid: .max), CachedResponse.sum(age, margin) >= lifetime {
            return false
        }
        if age < lifetime { return true }
        guard !response.contains("must-revalidate"), request.contains("max-stale") else { return false }
        // Without an argument, any staleness.
        let tolerated = request.isBare("max-stale") ? .max : request.seconds("max-stale", invalid: 0) ?? 0
        return age - lifetime <= tolerated
    }

    /// Asks by the entity tag, by the date too where there is one (section 4.3.1); without either there is nothing to
    /// ask by.
    private func revalidation(of stored: CachedResponse) -> Verdict {
        var conditions = HTTPFields()
        if let tag = stored.head.value(of: "etag"), Self.isFieldValue(tag) { conditions[.ifNoneMatch] = tag }
        if let date = stored.head.value(of: "last-modified"), HTTPDate.parse(date) != nil {
            conditions[.ifModifiedSince] = date
        }
        return conditions.isEmpty ? .load : .revalidate(conditions)
    }

    // MARK: After the answer

    /// The response as it is to be stored (section 3), or `nil` where it may not be.
    ///
    /// - Parameters:
    ///   - head: the answer's.
    ///   - body: the answer's, whole and decoded as far as `head` says.
    ///   - requestedAt: when the request was sent; seconds since 1970.
    ///   - now: when the answer came; seconds since 1970.
    public func stored(_ head: ResponseHead, body: [UInt8], requestedAt: Int64, now: Int64) -> CachedResponse? {
        guard mayStore(head), let varying = CachedResponse.varying(of: head, request: fields) else { return nil }
        return CachedResponse(
            head: head.removing(Self.connectionFields(of: head)), body: body, requestedAt: requestedAt, storedAt: now,
            varying: varying)
    }

    /// Whether the answer may be stored at all; known from its head, before its body.
    public func mayStore(_ head: ResponseHead) -> Bool {
        guard method == .get, !isPartialOrConditional, head.status >= 200, head.status != 206, head.status != 304 else {
            return false
        }
        let response = CacheControl(head.values(of: "cache-control"))
        guard !response.contains("no-store"), !CacheControl(fields[values: .cacheControl]).contains("no-store"),
            CachedResponse.varying(of: head, request: fields) != nil
        else { return false }
        // Of other statuses, what they mean for a cache is not known: only where the server says so. `private` does,
        // to a private cache.
        return CachedResponse.heuristicStatuses.contains(head.status)
            || response.contains("max-age") || response.contains("public") || response.contains("private")
            || head.value(of: "expires") != nil
    }

    /// What is stored, as a 304 renews it (sections 3.2 and 4.3.4).
    ///
    /// - Returns: `nil` where the 304 speaks of another version: what is stored is of no use then, load anew.
    public func freshened(
        _ stored: CachedResponse, by head: ResponseHead, requestedAt: Int64, now: Int64
    ) -> CachedResponse? {
        guard head.status == 304, stored.matches(fields) else { return nil }
        if let theirs = head.value(of: "etag") {
            guard let own = stored.head.value(of: "etag"), Self.opaque(own).elementsEqual(Self.opaque(theirs))
            else { return nil }
        } else if let theirs = head.value(of: "last-modified") {
            guard stored.head.value(of: "last-modified") == theirs else { return nil }
        }
        let kept = Self.connectionFields(of: head).union(Self.describingBody)
        let updated = stored.head.updated(by: head, except: kept)
        // A Vary that came with the 304 speaks of the request that brought it.
        guard let varying = CachedResponse.varying(of: updated, request: fields),
            !CacheControl(updated.values(of: "cache-control")).contains("no-store")
        else { return nil }
        return CachedResponse(
            head: updated, body: stored.body, requestedAt: requestedAt, storedAt: now, varying: varying)
    }

    /// Whether what is stored for the request's URL must go, since the request may have changed it (section 4.4).
    public func invalidates(status: Int) -> Bool {
        switch method {
        case .get, .head, .options, .trace: false
        default: (200...399).contains(status)
        }
    }

    // MARK: Fields

    private static let pragma = HTTPField.Name("pragma")

    var isPartialOrConditional: Bool {
        [.range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince].contains { fields[$0] != nil }
    }

    /// A 304 has no body: what it says of one is not about the stored one (section 3.2).
    private static let describingBody: Set<String> = [
        "content-length", "content-encoding", "content-type", "content-range",
    ]

    /// Fields that end with the connection (section 3.1), and those that `Connection` names.
    private static func connectionFields(of head: ResponseHead) -> Set<String> {
        var names: Set<String> = [
            "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
            "proxy-connection", "te", "transfer-encoding", "upgrade",
        ]
        for value in head.values(of: "connection") {
            for name in value.utf8.split(separator: UInt8(ascii: ",")) {
                names.insert(String(decoding: FieldText.trimmed(name), as: UTF8.self).lowercased())
            }
        }
        return names
    }

    /// A tag without the mark of weakness: weak comparison is enough here (RFC 9110, section 8.8.3.2).
    private static func opaque(_ tag: String) -> Substring.UTF8View {
        let bytes = tag.utf8[...]
        return bytes.starts(with: "W/".utf8) ? bytes.dropFirst(2) : bytes
    }

    private static func isFieldValue(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
