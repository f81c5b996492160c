/// A cookie (RFC 6265), with the fields that browsers' cookie files store.
public struct Cookie: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The maximum length of name and value together, in bytes (RFC 6265, section 6.1).
    public static let maximumLength = 4096
    /// The maximum length of a path, in bytes.
    public static let maximumPathLength = 1024
    /// The maximum length of a domain, in bytes: the limit of the DNS.
    public static let maximumDomainLength = 255

    /// The case-sensitive name (RFC 6265, section 5.3).
    public let name: String
    /// The value as sent by the server.
    public let value: String
    /// A host name in lower case or an IP address (IPv6 without brackets), never with a leading dot.
    public let domain: String
    /// Whether the cookie is also sent to subdomains of ``domain``. Otherwise it is a host-only cookie.
    public let includesSubdomains: Bool
    /// The path prefix of URLs to which the cookie is sent. It begins with a slash.
    public let path: String
    /// Whether the cookie is sent over secure connections only. Every connection to `localhost`, 127.0.0.1 and ::1
    /// counts as secure, as in browsers.
    public let isSecure: Bool
    /// Whether scripts may not access the cookie. This library runs no scripts; it keeps the flag for other readers of
    /// the file.
    public let isHTTPOnly: Bool
    /// The expiry in seconds since 1970; 0 for a session cookie.
    public let expires: Int64

    /// Creates a cookie.
    ///
    /// - Parameters:
    ///   - name: The cookie's name.
    ///   - value: The cookie's value.
    ///   - domain: The cookie's domain. A leading dot is removed.
    ///   - includesSubdomains: Whether the cookie is also sent to subdomains of `domain`.
    ///   - path: The path prefix of URLs to which the cookie is sent.
    ///   - isSecure: Whether the cookie is sent over secure connections only; see ``isSecure``.
    ///   - isHTTPOnly: Whether scripts may not access the cookie.
    ///   - expires: The expiry in seconds since 1970; 0 for a session cookie.
    /// - Returns: `nil` if the cookie could not be written to a line and read back unchanged. The causes are control
    ///   characters, an empty name, a name with `=` or `;`, a path without a leading slash, a domain that is neither a
    ///   name nor an address, a time before 1970, or an exceeded limit.
    public init?(
        name: String, value: String, domain: String, includesSubdomains: Bool = false, path: String = "/",
        isSecure: Bool = false, isHTTPOnly: Bool = false, expires: Int64 = 0
    ) {
        let host = domain.utf8.first == UInt8(ascii: ".") ? String(domain.dropFirst()) : domain
        guard Self.isName(name), Self.isValue(value), name.utf8.count + value.utf8.count <= Self.maximumLength,
            Self.isDomain(host), Self.isPath(path), expires >= 0
        else { return nil }
        self.name = name
        self.value = value
        self.domain = host.lowercased()
        // An address has no subdomains (section 5.1.3). A single-label name gets none either: the server of a top-level
        // or local domain may set cookies only for itself.
        self.includesSubdomains = includesSubdomains && host.utf8.contains(UInt8(ascii: ".")) && !Self.isAddress(host)
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
    }

    /// A description with name, domain and path. It omits the value, which is often as sensitive as a password.
    public var description: String { "Cookie(\(name), \(domain)\(path))" }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    // The checks use bytes, because a combining mark and its letter form a single `Character`.

    static func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    private static func isPlain(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F }

    private static func isName(_ name: String) -> Bool {
        let bytes = name.utf8
        guard let first = bytes.first, let last = bytes.last, first != 0x20, last != 0x20 else { return false }
        return bytes.allSatisfy { isPlain($0) && $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
    }

    private static func isValue(_ value: String) -> Bool {
        // Leading and trailing spaces would be stripped by a reader (section 5.2).
        value.utf8.first != 0x20 && value.utf8.last != 0x20
            && value.utf8.allSatisfy { isPlain($0) && $0 != UInt8(ascii: ";") }
    }

    private static func isPath(_ path: String) -> Bool {
        path.utf8.first == UInt8(ascii: "/") && path.utf8.count <= maximumPathLength
            && path.utf8.allSatisfy { isPlain($0) && $0 != UInt8(ascii: ";") }
    }

    private static func isDomain(_ domain: String) -> Bool {
        let bytes = domain.utf8
        guard let first = bytes.first, first != UInt8(ascii: "."), bytes.count <= maximumDomainLength else {
            return false
        }
        if bytes.contains(UInt8(ascii: ":")) { return isAddress(domain) }
        return bytes.allSatisfy { byte in
            switch lowercase(byte) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
            default: false
            }
        }
    }

    /// Returns whether the domain is an IPv6 address or consists of digits and dots. DNS names never do, because no
    /// top-level domain is numeric.
    static func isAddress(_ domain: String) -> Bool {
        let bytes = domain.utf8
        if bytes.contains(UInt8(ascii: ":")) {
            return bytes.allSatisfy { byte in
                switch lowercase(byte) {
                case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
                case UInt8(ascii: ":"), UInt8(ascii: "."): true
                default: false
                }
            }
        }
        return bytes.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
    }
}
