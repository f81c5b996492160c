/// The rules that decide which requests carry a cookie. Comparisons use bytes, because a combining mark and its letter
/// form a single `Character`.
extension Cookie {
    /// Returns whether the cookie has expired.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    public func isExpired(now: Int64) -> Bool { expires != 0 && expires <= now }

    /// Returns whether a request to `host` would carry the cookie (RFC 6265, section 5.1.3).
    ///
    /// - Parameter host: A host name in any letter case, or an address as in a URL but without brackets.
    public func matches(host: String) -> Bool {
        let host = host.lowercased()
        return includesSubdomains ? Self.host(host, isWithin: domain) : host == domain
    }

    /// Returns whether a request for `path` would carry the cookie (RFC 6265, section 5.1.4).
    ///
    /// - Parameter requested: The path of a URL, without its query.
    public func matches(path requested: String) -> Bool {
        let own = path.utf8
        let requested = requested.utf8.first == UInt8(ascii: "/") ? requested.utf8 : "/".utf8
        guard requested.starts(with: own) else { return false }
        return requested.count == own.count || own.last == UInt8(ascii: "/")
            || requested.dropFirst(own.count).first == UInt8(ascii: "/")
    }

    /// Whether the cookie has the attributes that its name's prefix promises, `__Secure-` or `__Host-`. A cookie
    /// without them is not sent, and not accepted from a server.
    var satisfiesNamePrefix: Bool {
        let start = name.utf8.prefix(9).map(Self.lowercase)
        if start.elementsEqual("__secure-".utf8) { return isSecure }
        return !start.starts(with: "__host-".utf8) || isSecure && !includesSubdomains && path == "/"
    }

    /// Returns whether `host` is `domain` or a name beneath it. Both are in lower case.
    static func host(_ host: String, isWithin domain: String) -> Bool {
        let (host, domain) = (host.utf8, domain.utf8)
        guard host.count > domain.count else { return host.elementsEqual(domain) }
        return host.suffix(domain.count).elementsEqual(domain)
            && host.dropLast(domain.count).last == UInt8(ascii: ".")
    }
}
