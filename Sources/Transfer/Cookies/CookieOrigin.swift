/// The part of a URL by which cookies are selected and accepted.
struct CookieOrigin {
    /// The host in lower case, an IPv6 address without its brackets.
    let host: String
    /// The path without the query. It begins with a slash.
    let path: String
    /// Whether the connection is encrypted, or does not leave this machine.
    let isSecure: Bool

    /// Creates an origin.
    ///
    /// - Parameters:
    ///   - host: A host name in any letter case, or an address as in a URL but without brackets.
    ///   - path: The path of a URL, without its query.
    ///   - isSecure: Whether the connection is encrypted.
    init(host: String, path: String, isSecure: Bool) {
        self.host = host.lowercased()
        self.path = path.utf8.first == UInt8(ascii: "/") ? path : "/"
        self.isSecure = isSecure
    }

    /// The path of a cookie whose server names none: the path up to its last slash (RFC 6265, section 5.1.4).
    var defaultPath: String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }
}
