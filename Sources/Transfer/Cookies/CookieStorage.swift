import Synchronization

/// The policy for cookies that servers set.
public enum CookieAcceptPolicy: Sendable {
    /// Cookies of every server are stored.
    case always
    /// Cookies that servers set, change or delete are ignored. Cookies that the program stored are still sent.
    case never
}

/// The cookies of one session, or of several sessions that explicitly share the storage.
///
/// A response's cookies are stored when its head arrives, and are sent by all requests that begin after that.
public final class CookieStorage: Sendable {
    /// The maximum number of cookies. Beyond it, the cookie stored earliest is removed.
    public static let maximumCount = 3000
    /// The maximum number of cookies of a domain. Beyond it, the cookie of that domain stored earliest is removed.
    public static let maximumCountPerDomain = 180
    /// The maximum number of cookies that a response can set. Later ones are ignored, as by libcurl.
    static let maximumCountPerResponse = 50

    private let table = Mutex(CookieTable())
    private let policy: Mutex<CookieAcceptPolicy>

    /// Creates an empty storage.
    public init(acceptPolicy: CookieAcceptPolicy = .always) {
        policy = Mutex(acceptPolicy)
    }

    /// The accept policy. A change applies to responses that arrive after it.
    public var acceptPolicy: CookieAcceptPolicy {
        get { policy.withLock { $0 } }
        set { policy.withLock { $0 = newValue } }
    }

    /// All cookies, including expired ones, in the order in which they were stored.
    public var cookies: [Cookie] { table.withLock { $0.cookies } }

    var isEmpty: Bool { table.withLock { $0.isEmpty } }

    /// Stores a cookie. It replaces the cookie of the same name, domain and path.
    public func set(_ cookie: Cookie) { table.withLock { $0.set(cookie) } }

    /// Removes the cookie of the same name, domain and path, whatever its value.
    public func delete(_ cookie: Cookie) { table.withLock { $0.remove(CookieTable.Key(cookie)) } }

    /// Removes all cookies.
    public func removeAll() { table.withLock { $0 = CookieTable() } }

    /// Returns the cookies that a request would carry (RFC 6265, section 5.4): longer paths first, then cookies stored
    /// earlier.
    ///
    /// - Parameters:
    ///   - host: The host as in a URL, an IPv6 address without its brackets.
    ///   - path: The path of the URL, without its query.
    ///   - isSecure: Whether the connection is encrypted.
    ///   - now: The current time in seconds since 1970.
    public func cookies(for host: String, path: String, isSecure: Bool, now: Int64) -> [Cookie] {
        cookies(for: CookieOrigin(host: host, path: path, isSecure: isSecure), now: now)
    }

    /// Returns the cookies that a request to `origin` carries.
    func cookies(for origin: CookieOrigin, now: Int64) -> [Cookie] {
        let found = table.withLock { $0.cookies(for: origin.host, now: now) }.filter { cookie in
            cookie.matches(path: origin.path) && (origin.isSecure || !cookie.isSecure) && cookie.satisfiesNamePrefix
        }
        return found.enumerated().sorted { left, right in
            let (ours, theirs) = (left.element.path.utf8.count, right.element.path.utf8.count)
            return ours == theirs ? left.offset < right.offset : ours > theirs
        }.map(\.element)
    }

    /// Stores, changes or deletes the cookies that a response sets.
    ///
    /// - Parameters:
    ///   - fields: The values of the response's `Set-Cookie` fields.
    ///   - origin: The server and the path that it was asked for.
    ///   - now: The current time in seconds since 1970.
    func receive(_ fields: [String], from origin: CookieOrigin, now: Int64) {
        guard !fields.isEmpty, acceptPolicy == .always else { return }
        var cookies: [Cookie] = []
        for field in fields where cookies.count < Self.maximumCountPerResponse {
            if let field = SetCookie(field), let cookie = Cookie(field, from: origin, now: now) {
                cookies.append(cookie)
            }
        }
        table.withLock { table in
            for cookie in cookies { table.receive(cookie, from: origin, now: now) }
        }
    }
}
