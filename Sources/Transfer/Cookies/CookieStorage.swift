import Synchronization

/// Whether cookies that servers set are kept.
public enum CookieAcceptPolicy: Sendable {
    /// Those of every server.
    case always
    /// What servers set, change or delete is dropped; the program's own cookies are sent as they are.
    case never
}

/// The cookies of one session, or of those that were given the same storage on purpose.
///
/// Each exchange has its own copy: it is fed the cookies of its host, libcurl applies the answer's fields to them, and
/// what the exchange made of its copy is brought back by `replace(fed:got:)`. So exchanges that run side by side
/// share no state of libcurl's.
public final class CookieStorage: Sendable {
    /// Cookies in all; beyond it, the one stored the longest ago goes.
    public static let maximumCount = 3000
    /// Cookies of one domain; beyond it, the one of that domain stored the longest ago goes.
    public static let maximumCountPerDomain = 180

    private let table = Mutex(CookieTable())
    private let policy: Mutex<CookieAcceptPolicy>

    /// An empty one.
    public init(acceptPolicy: CookieAcceptPolicy = .always) {
        policy = Mutex(acceptPolicy)
    }

    /// Applies to exchanges that end from now on.
    public var acceptPolicy: CookieAcceptPolicy {
        get { policy.withLock { $0 } }
        set { policy.withLock { $0 = newValue } }
    }

    /// All, in the order of their storing; those among them whose time is over too.
    public var cookies: [Cookie] { table.withLock { $0.cookies } }

    /// Stores a cookie in place of the one of the same name, domain and path.
    public func set(_ cookie: Cookie) { table.withLock { $0.set(cookie) } }

    /// Removes the cookie of that name, domain and path, whatever its value.
    public func delete(_ cookie: Cookie) { table.withLock { $0.remove(CookieTable.Key(cookie)) } }

    /// Forgets every cookie.
    public func removeAll() { table.withLock { $0 = CookieTable() } }

    /// What a request would carry (RFC 6265, section 5.4): longer paths first, then those stored earlier.
    ///
    /// - Parameters:
    ///   - host: as in a URL, an IPv6 address without its brackets.
    ///   - path: that of the URL, without its query.
    ///   - isSecure: whether the connection is encrypted.
    ///   - now: seconds since 1970.
    public func cookies(for host: String, path: String, isSecure: Bool, now: Int64) -> [Cookie] {
        let found = candidates(for: host, now: now).filter { cookie in
            cookie.matches(path: path) && (isSecure || !cookie.isSecure)
        }
        return found.enumerated().sorted { left, right in
            let (ours, theirs) = (left.element.path.utf8.count, right.element.path.utf8.count)
            return ours == theirs ? left.offset < right.offset : ours > theirs
        }.map(\.element)
    }

    /// What an exchange with `host` is to be fed: the cookies that it could send, change or delete.
    ///
    /// More than it sends: an answer may delete a cookie of another path, and only where libcurl knows of a secure
    /// cookie does it keep an answer without encryption from shadowing it. libcurl itself chooses what to send.
    package func candidates(for host: String, now: Int64) -> [Cookie] {
        table.withLock { $0.cookies(for: host, now: now) }
    }

    /// Brings back what one exchange did: what it added or changed is stored, what it deleted is removed, unless
    /// another exchange has changed that meanwhile.
    ///
    /// - Parameters:
    ///   - fed: what the exchange was given, from ``candidates(for:now:)``.
    ///   - got: what it had at its end. libcurl leaves out what the server deleted.
    package func replace(fed: [Cookie], got: [Cookie]) {
        guard acceptPolicy == .always else { return }
        let before = Dictionary(fed.map { (CookieTable.Key($0), $0) }, uniquingKeysWith: { $1 })
        let after = Dictionary(got.map { (CookieTable.Key($0), $0) }, uniquingKeysWith: { $1 })
        table.withLock { table in
            for (key, cookie) in before where after[key] == nil && table[key] == cookie { table.remove(key) }
            // In their order: where one must go, it is the same one every time.
            for cookie in got where before[CookieTable.Key(cookie)] != cookie { table.set(cookie) }
        }
    }
}
