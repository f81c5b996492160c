/// A table of cookies by identity, with the storage's limits.
struct CookieTable {
    /// The identity of a cookie (RFC 6265, section 5.3, step 11). As in libcurl, a host-only cookie and a domain cookie
    /// differ, and a trailing slash of the path is ignored.
    struct Key: Hashable {
        let name: String
        let domain: String
        let includesSubdomains: Bool
        let path: String

        init(_ cookie: Cookie) {
            name = cookie.name
            domain = cookie.domain
            includesSubdomains = cookie.includesSubdomains
            let bytes = cookie.path.utf8
            let hasSlash = bytes.count > 1 && bytes.last == UInt8(ascii: "/")
            path = hasSlash ? String(Substring(bytes.dropLast())) : cookie.path
        }
    }

    private struct Entry {
        let cookie: Cookie
        let order: UInt64
    }

    /// The cookies by domain, so that a lookup searches only the domains of its host.
    private var domains: [String: [Key: Entry]] = [:]
    private var count = 0
    var isEmpty: Bool { count == 0 }
    private var stored: UInt64 = 0

    subscript(key: Key) -> Cookie? { domains[key.domain]?[key]?.cookie }

    var cookies: [Cookie] {
        Self.ordered(domains.values.flatMap(\.values))
    }

    /// Returns the unexpired cookies that match a host in lower case, in the order in which they were stored.
    func cookies(for host: String, now: Int64) -> [Cookie] {
        guard count > 0, host.utf8.count <= Cookie.maximumDomainLength else { return [] }
        var found: [Entry] = []
        var name = host[...]
        // Search the host itself and every parent domain.
        while true {
            if let entries = domains[String(name)] {
                found += entries.values.filter { $0.cookie.matches(host: host) && !$0.cookie.isExpired(now: now) }
            }
            guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")) else { break }
            name = name[name.utf8.index(after: dot)...]
        }
        return Self.ordered(found)
    }

    mutating func set(_ cookie: Cookie) {
        let key = Key(cookie)
        remove(key)
        stored += 1
        domains[cookie.domain, default: [:]][key] = Entry(cookie: cookie, order: stored)
        count += 1
        if let entries = domains[cookie.domain], entries.count > CookieStorage.maximumCountPerDomain {
            removeOldest(of: entries.lazy.map { ($0.key, $0.value.order) })
        }
        if count > CookieStorage.maximumCount {
            removeOldest(of: domains.values.lazy.joined().map { ($0.key, $0.value.order) })
        }
    }

    /// Stores a server's cookie, or removes the stored one if the server's has expired.
    mutating func receive(_ cookie: Cookie, from origin: CookieOrigin, now: Int64) {
        // Without encryption, a cookie of the same name does not replace, hide or delete a secure one (RFC 6265bis,
        // section 5.7).
        if !origin.isSecure,
            cookies(for: origin.host, now: now).contains(where: {
                $0.isSecure && $0.name == cookie.name && $0.matches(path: cookie.path)
            })
        {
            return
        }
        let key = Key(cookie)
        if cookie.isExpired(now: now) {
            remove(key)
        } else if self[key] != cookie {
            set(cookie)
        }
    }

    mutating func remove(_ key: Key) {
        guard domains[key.domain]?.removeValue(forKey: key) != nil else { return }
        count -= 1
        if domains[key.domain]?.isEmpty == true { domains[key.domain] = nil }
    }

    private mutating func removeOldest(of candidates: some Sequence<(Key, UInt64)>) {
        if let oldest = candidates.min(by: { $0.1 < $1.1 }) { remove(oldest.0) }
    }

    private static func ordered(_ entries: [Entry]) -> [Cookie] {
        entries.sorted { $0.order < $1.order }.map(\.cookie)
    }
}
