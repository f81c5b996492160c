import HTTPMessages

/// Age and freshness lifetime (RFC 9111, section 4.2) as a private cache calculates them: `s-maxage` does not apply to
/// it.
extension CachedResponse {
    /// The longest heuristic lifetime, in seconds, if the server sends no explicit one.
    static let greatestHeuristicLifetime: Int64 = 24 * 3600
    /// Status codes that may be stored with a heuristic lifetime without an explicit permission of the server (RFC
    /// 9110, section 15.1), except 206: partial responses are not stored.
    static let heuristicStatuses: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Returns the seconds since the origin server generated or last validated the response (section 4.2.3).
    func age(now: Int64) -> Int64 {
        let ageValue = head.value(of: "age").flatMap { CacheControl.seconds($0.utf8) } ?? 0
        let date = head.value(of: "date").flatMap(HTTPDate.parse)
        let apparent = date.map { Self.distance(from: $0, to: storedAt) } ?? 0
        let corrected = Self.sum(ageValue, Self.distance(from: requestedAt, to: storedAt))
        return Self.sum(max(apparent, corrected), Self.distance(from: storedAt, to: now))
    }

    /// The freshness lifetime in seconds (section 4.2.1): `max-age`, else `Expires`, else a tenth of the time between
    /// `Last-Modified` and the sending of the response, a day at most (section 4.2.2). An unreadable value counts as 0.
    var lifetime: Int64 {
        let control = CacheControl(head.values(of: "cache-control"))
        if let seconds = control.seconds("max-age", invalid: 0) { return seconds }
        let date = head.value(of: "date").flatMap(HTTPDate.parse) ?? storedAt
        if let expires = head.value(of: "expires") {
            return HTTPDate.parse(expires).map { Self.distance(from: date, to: $0) } ?? 0
        }
        guard Self.heuristicStatuses.contains(head.status) || control.contains("public"),
            let modified = head.lastModified
        else { return 0 }
        return min(Self.distance(from: modified, to: date) / 10, Self.greatestHeuristicLifetime)
    }

    /// Returns the seconds between two times, 0 if `later` is not later: clocks differ and may be set.
    private static func distance(from earlier: Int64, to later: Int64) -> Int64 {
        let (difference, overflow) = later.subtractingReportingOverflow(earlier)
        if later <= earlier { return 0 }
        return overflow ? .max : difference
    }

    static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }
}
