import Curl

extension Cookie {
    /// Creates the cookie that a server sets, if it may (RFC 6265, section 5.3).
    ///
    /// - Parameters:
    ///   - field: The contents of the server's field.
    ///   - origin: The server and the path that it was asked for.
    ///   - now: The current time in seconds since 1970.
    /// - Returns: `nil` if the cookie is for another domain or a public suffix, is secure while the connection is not,
    ///   lacks what the prefix of its name promises, or has invalid or too long fields.
    init?(_ field: SetCookie, from origin: CookieOrigin, now: Int64) {
        // Without the attribute `Domain`, or with that of a public suffix by itself, the cookie is for this host only.
        var domain = origin.host
        var includesSubdomains = false
        if let wanted = field.domain {
            guard Self.host(origin.host, isWithin: wanted) else { return nil }
            includesSubdomains = Self.isAboveSuffix(wanted, of: origin.host)
            guard includesSubdomains || wanted == origin.host else { return nil }
            domain = wanted
        }
        guard origin.isSecure || !field.isSecure else { return nil }
        self.init(
            name: field.name, value: field.value, domain: domain, includesSubdomains: includesSubdomains,
            path: field.path ?? origin.defaultPath, isSecure: field.isSecure, isHTTPOnly: field.isHTTPOnly,
            expires: Self.expiry(of: field, now: now))
        // The domain differs if the host begins with a dot, which no name does.
        guard satisfiesNamePrefix, self.domain == domain else { return nil }
    }

    /// Returns whether a domain of a host is longer than the host's public suffix. An address has no domains, and a
    /// name with a dot at its end has none that the list of suffixes contains.
    private static func isAboveSuffix(_ domain: String, of host: String) -> Bool {
        !isAddress(host) && host.utf8.last != UInt8(ascii: ".")
            && domain.utf8.count > PublicSuffix.length(in: host)
    }

    /// Returns the expiry in seconds since 1970; 0 for a session cookie, and 1 for a cookie that the server deletes.
    private static func expiry(of field: SetCookie, now: Int64) -> Int64 {
        if let age = field.maxAge {
            guard age > 0 else { return 1 }
            let (time, overflows) = now.addingReportingOverflow(age)
            return overflows ? .max : max(1, time)
        }
        return field.expires.flatMap(LenientDate.seconds).map { max(1, $0) } ?? 0
    }
}
