/// One cookie, in the fields that libcurl and the files of browsers keep of it.
///
/// Whether a server may set it is judged by libcurl, which knows public suffixes, the prefixes `__Host-` and
/// `__Secure-`, and what only a secure connection may touch; here is what remains of that judgement.
public struct Cookie: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of name and value together (RFC 6265, section 6.1).
    public static let maximumLength = 4096
    /// Bytes of a path.
    public static let maximumPathLength = 1024
    /// Bytes of a domain: what the DNS allows.
    public static let maximumDomainLength = 255

    /// Case matters in it (RFC 6265, section 5.3).
    public let name: String
    /// As the server sent it.
    public let value: String
    /// A host's name in lower case, or an address (IPv6 without brackets); never with a dot in front.
    public let domain: String
    /// Sent to hosts beneath ``domain`` too; otherwise the cookie is the host's alone.
    public let includesSubdomains: Bool
    /// Begins with a slash.
    public let path: String
    /// For secure connections only.
    public let isSecure: Bool
    /// Not for scripts. Nothing here runs scripts: kept for those that read the file.
    public let isHTTPOnly: Bool
    /// Seconds since 1970; 0 for a cookie that lives as long as its session.
    public let expires: Int64

    /// - Parameters:
    ///   - name: the cookie's.
    ///   - value: the cookie's.
    ///   - domain: a dot in front is dropped.
    ///   - includesSubdomains: whether hosts beneath `domain` get it too.
    ///   - path: where on the host it begins to be sent.
    ///   - isSecure: whether it goes over TLS alone.
    ///   - isHTTPOnly: whether scripts are kept from it.
    ///   - expires: seconds since 1970, 0 for the session's lifetime.
    /// - Returns: `nil` for a cookie that could not be written to a line and read again as itself: control characters,
    ///   an empty name, a name with `=` or `;`, a path without a slash in front, a domain that is neither a name nor
    ///   an address, a time before 1970, or more than the limits allow.
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
        // An address has nothing beneath it (section 5.1.3), and neither has a name of one label: a server of a whole
        // top-level domain, or of a local one, speaks for itself alone.
        self.includesSubdomains = includesSubdomains && host.utf8.contains(UInt8(ascii: ".")) && !Self.isAddress(host)
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
    }

    /// Whether its time is over.
    ///
    /// - Parameter now: seconds since 1970.
    public func isExpired(now: Int64) -> Bool { expires != 0 && expires <= now }

    /// Whether a request to `host` would carry it (RFC 6265, section 5.1.3).
    ///
    /// - Parameter host: a name in any letter case or an address, as in a URL but without brackets.
    public func matches(host: String) -> Bool {
        let host = Array(host.utf8.map(Self.lowercase))
        let own = Array(domain.utf8)
        guard host != own else { return true }
        return includesSubdomains && host.count > own.count && host.suffix(own.count).elementsEqual(own)
            && host[host.count - own.count - 1] == UInt8(ascii: ".")
    }

    /// Whether a request for `path` would carry it (RFC 6265, section 5.1.4).
    ///
    /// - Parameter requested: that of a URL, without its query.
    public func matches(path requested: String) -> Bool {
        let own = path.utf8
        let requested = requested.utf8.first == UInt8(ascii: "/") ? requested.utf8 : "/".utf8
        guard requested.starts(with: own) else { return false }
        return requested.count == own.count || own.last == UInt8(ascii: "/")
            || requested.dropFirst(own.count).first == UInt8(ascii: "/")
    }

    /// Never the value, which is often as good as a password.
    public var description: String { "Cookie(\(name), \(domain)\(path))" }

    // By bytes throughout: a mark that combines with a letter makes one `Character` of both.

    static func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    private static func isPlain(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F }

    private static func isName(_ name: String) -> Bool {
        let bytes = name.utf8
        guard let first = bytes.first, let last = bytes.last, first != 0x20, last != 0x20 else { return false }
        return bytes.allSatisfy { isPlain($0) && $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
    }

    private static func isValue(_ value: String) -> Bool {
        // libcurl cuts spaces at the ends off.
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

    /// IPv6, or four numbers: no name of the DNS looks so, since no top-level domain is a number.
    private static func isAddress(_ domain: String) -> Bool {
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
