public import HTTPMessages
public import HTTPTypes

/// The decisions of a private cache for one request (RFC 9111). It is a value without a clock or a store.
public struct CacheEvaluation: Sendable {
    /// The action to take for a request.
    public enum Verdict: Sendable, Equatable {
        /// The stored response is used.
        case useStored
        /// The server is asked to validate the stored response: these fields are added to the request. A 304 means that
        /// the stored response is still valid, see ``CacheEvaluation/freshened(_:by:requestedAt:now:)``.
        case revalidate(HTTPFields)
        /// The request is sent as if nothing were stored.
        case load
        /// The request fails: it forbids contacting the server, and no stored response satisfies it.
        case fail
    }

    /// The request's method. Only responses to GET are stored.
    public let method: HTTPRequest.Method
    /// The request's header fields as sent, with those that the engine adds: `Authorization`, `Cookie`,
    /// `Accept-Encoding`.
    public let fields: HTTPFields
    /// The caller's cache policy.
    public let policy: RequestCachePolicy

    /// Creates the decisions for one request from its method and the header fields it is sent with.
    public init(method: HTTPRequest.Method, fields: HTTPFields, policy: RequestCachePolicy = .useProtocolCachePolicy) {
        self.method = method
        self.fields = fields
        self.policy = policy
    }

    // MARK: Before the request

    /// Decides what to do before the request is sent.
    ///
    /// - Parameters:
    ///   - stored: the stored response for the request's URL, if any.
    ///   - now: the time in seconds since 1970.
    public func verdict(stored: CachedResponse?, now: Int64) -> Verdict {
        // Requests for a part, or with conditions of the caller's own, are never served from the cache.
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

    /// Whether the stored response may be used without validation (section 4.2; the request's directives: section
    /// 5.2.1).
    private func isUsable(_ stored: CachedResponse, request: CacheControl, now: Int64) -> Bool {
        // `Pragma` applies only if the request has no `Cache-Control` (section 5.4).
        let wishes = request.isEmpty ? CacheControl(Self.pragma.map { fields[values: $0] } ?? []) : request
        guard !wishes.contains("no-cache") else { return false }
        let response = CacheControl(stored.head.values(of: "cache-control"))
        // With field names as its argument, `no-cache` requires validation of these fields only. Reuse of the rest is
        // permitted but not required, so the whole response is validated here too.
        guard !response.contains("no-cache") else { return false }

        let (age, lifetime) = (stored.age(now: now), stored.lifetime)
        if let limit = request.seconds("max-age", invalid: 0), age > limit { return false }
        if let margin = request.seconds("min-fresh", invalid: .max), CachedResponse.sum(age, margin) >= lifetime {
            return false
        }
        if age < lifetime { return true }
        guard !response.contains("must-revalidate"), request.contains("max-stale") else { return false }
        // Without an argument, `max-stale` accepts any staleness.
        let tolerated = request.isBare("max-stale") ? .max : request.seconds("max-stale", invalid: 0) ?? 0
        return age - lifetime <= tolerated
    }

    /// Returns a validation by the ETag, and by the date too if there is one (section 4.3.1). Without either validator
    /// it returns a plain load.
    private func revalidation(of stored: CachedResponse) -> Verdict {
        var conditions = HTTPFields()
        if let tag = stored.head.value(of: "etag"), Self.isFieldValue(tag) { conditions[.ifNoneMatch] = tag }
        if let date = stored.head.value(of: "last-modified"), HTTPDate.parse(date) != nil {
            conditions[.ifModifiedSince] = date
        }
        return conditions.isEmpty ? .load : .revalidate(conditions)
    }

    // MARK: After the answer

    /// Returns the response in the form to be stored (section 3), or `nil` if it must not be stored.
    ///
    /// - Parameters:
    ///   - head: the response's head.
    ///   - body: the complete body, decoded as far as `head` states.
    ///   - requestedAt: the time the request was sent, in seconds since 1970.
    ///   - now: the time the response was received, in seconds since 1970.
    public func stored(_ head: ResponseHead, body: [UInt8], requestedAt: Int64, now: Int64) -> CachedResponse? {
        guard mayStore(head), let varying = CachedResponse.varying(of: head, request: fields) else { return nil }
        return CachedResponse(
            head: head.removing(Self.connectionFields(of: head)), body: body, requestedAt: requestedAt, storedAt: now,
            varying: varying)
    }

    /// Whether the response may be stored. This is known from its head, before the body is received.
    public func mayStore(_ head: ResponseHead) -> Bool {
        guard method == .get, !isPartialOrConditional, head.status >= 200, head.status != 206, head.status != 304 else {
            return false
        }
        let response = CacheControl(head.values(of: "cache-control"))
        guard !response.contains("no-store"), !CacheControl(fields[values: .cacheControl]).contains("no-store"),
            CachedResponse.varying(of: head, request: fields) != nil
        else { return false }
        // The meaning of the other statuses for a cache is unknown. Such a response is stored only if the server
        // permits it explicitly; `private` is a permission for a private cache.
        return CachedResponse.heuristicStatuses.contains(head.status)
            || response.contains("max-age") || response.contains("public") || response.contains("private")
            || head.value(of: "expires") != nil
    }

    /// Returns the stored response as updated by a 304 (sections 3.2 and 4.3.4).
    ///
    /// - Returns: `nil` if the 304 is about another version or forbids storing. The stored response is then unusable,
    ///   and the resource must be loaded again.
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
        // A `Vary` in the 304 applies to the request that the 304 responds to.
        guard let varying = CachedResponse.varying(of: updated, request: fields),
            !CacheControl(updated.values(of: "cache-control")).contains("no-store")
        else { return nil }
        return CachedResponse(
            head: updated, body: stored.body, requestedAt: requestedAt, storedAt: now, varying: varying)
    }

    /// Whether the stored response for the request's URL must be removed, because the request may have changed the
    /// resource (section 4.4).
    public func invalidates(status: Int) -> Bool {
        switch method {
        case .get, .head, .options, .trace: false
        default: (200...399).contains(status)
        }
    }

    // MARK: Fields

    private static let pragma = HTTPField.Name("pragma")

    package var isPartialOrConditional: Bool {
        [.range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince].contains { fields[$0] != nil }
    }

    /// Fields that describe a body. A 304 has no body, so its values do not replace the stored ones (section 3.2).
    private static let describingBody: Set<String> = [
        "content-length", "content-encoding", "content-type", "content-range",
    ]

    /// Returns the names of the fields that apply to one connection only (section 3.1), with those listed in
    /// `Connection`.
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

    /// Returns an ETag without its `W/` prefix. Weak comparison is sufficient here (RFC 9110, section 8.8.3.2).
    private static func opaque(_ tag: String) -> Substring.UTF8View {
        let bytes = tag.utf8[...]
        return bytes.starts(with: "W/".utf8) ? bytes.dropFirst(2) : bytes
    }

    private static func isFieldValue(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
