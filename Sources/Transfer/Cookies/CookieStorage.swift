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
/// Each exchange works on its own copy. It gets the cookies of its host, libcurl applies the response's `Set-Cookie`
/// fields to them, and `replace(fed:got:)` merges the result back. Concurrent exchanges therefore share no libcurl
/// state.
public final class CookieStorage: Sendable {
    /// The maximum number of cookies. Beyond it, the cookie stored earliest is removed.
    public static let maximumCount = 3000
    /// The maximum number of cookies of a domain. Beyond it, the cookie of that domain stored earliest is removed.
    public static let maximumCountPerDomain = 180

    private let table = Mutex(CookieTable())
    private let policy: Mutex<CookieAcceptPolicy>

    /// Creates an empty storage.
    public init(acceptPolicy: CookieAcceptPolicy = .always) {
        policy = Mutex(acceptPolicy)
    }

    /// The accept policy. A change applies to exchanges that end after it.
    public var acceptPolicy: CookieAcceptPolicy {
        get { policy.withLock { $0 } }
        set { policy.withLock { $0 = newValue } }
    }

    /// All cookies, including expired ones, in the order in which they were stored.
    public var cookies: [Cookie] { table.withLock { $0.cookies } }

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
        let found = candidates(for: host, now: now).filter { cookie in
            cookie.matches(path: path) && (isSecure || !cookie.isSecure)
        }
        return found.enumerated().sorted { left, right in
            let (ours, theirs) = (left.element.path.utf8.count, right.element.path.utf8.count)
            return ours == theirs ? left.offset < right.offset : ours > theirs
        }.map(\.element)
    }

    /// Returns the cookies to give to an exchange with `host`: those that it could send, change or delete.
    ///
    /// These are more cookies than the request carries. A response may delete a cookie of another path. libcurl
    /// prevents an unencrypted response from overriding a secure cookie only if it has that cookie. libcurl itself
    /// selects the cookies to send.
    package func candidates(for host: String, now: Int64) -> [Cookie] {
        table.withLock { $0.cookies(for: host, now: now) }
    }

    /// Merges the cookies of a finished exchange: stores those that it added or changed, and removes those that it
    /// deleted unless another exchange has changed them meanwhile.
    ///
    /// - Parameters:
    ///   - fed: The cookies given to the exchange, from ``candidates(for:now:)``.
    ///   - got: The exchange's cookies at its end. libcurl omits those that the server deleted.
    package func replace(fed: [Cookie], got: [Cookie]) {
        guard acceptPolicy == .always else { return }
        let before = Dictionary(fed.map { (CookieTable.Key($0), $0) }, uniquingKeysWith: { $1 })
        let after = Dictionary(got.map { (CookieTable.Key($0), $0) }, uniquingKeysWith: { $1 })
        table.withLock { table in
            for (key, cookie) in before where after[key] == nil && table[key] == cookie { table.remove(key) }
            // Storing in order makes the eviction of the oldest cookie deterministic.
            for cookie in got where before[CookieTable.Key(cookie)] != cookie { table.set(cookie) }
        }
    }
}
