import Curl
import Glibc
import HTTPTypes

/// The cookies that one exchange sends, and the storage for those that its response sets.
struct ExchangeCookies {
    /// The maximum number of cookies in a request, the same as libcurl's.
    static let maximumCount = 150
    /// The maximum length of the `Cookie` field line, in bytes, the same as libcurl's.
    static let maximumLength = 8190

    private let storage: CookieStorage
    private let request: TransferRequest
    private let url: CurlURL
    /// Whether stored cookies are sent. Otherwise the request sets its own `Cookie` field or the session sends none.
    private let sendsStored: Bool
    /// The request's own `Cookie` field, with which the cookies of the request's own storage share a line; `nil` if it
    /// has none.
    private let own: String?

    /// Creates the cookies of an exchange.
    ///
    /// - Returns: `nil` if neither the request nor the session has a cookie storage.
    init?(of request: TransferRequest, at url: CurlURL, _ configuration: SessionConfiguration) {
        guard let storage = request.cookies ?? configuration.cookieStorage else { return nil }
        self.storage = storage
        self.request = request
        self.url = url
        // RFC 6265 (section 5.4) permits one `Cookie` field.
        own = request.cookies == nil ? nil : request.headerFields[.cookie]
        sendsStored =
            configuration.httpShouldSetCookies
            && (own != nil || !SentFields.names(.cookie, request, configuration))
    }

    /// The origin of the cookies. Most exchanges have none, and do not need it.
    var origin: CookieOrigin {
        let host = Self.host(of: request, at: url)
        // Plain connections to the local host count as secure, as they do for libcurl and browsers.
        let isLocal = host == "localhost" || host == "127.0.0.1" || host == "::1"
        return CookieOrigin(host: host, path: url.path, isSecure: url.scheme == "https" || isLocal)
    }

    /// Returns the `Cookie` field line with the stored cookies; `nil` if there are none (RFC 6265, section 5.4).
    func fieldLine() -> String? {
        guard sendsStored, !storage.isEmpty else { return nil }
        let cookies = storage.cookies(for: origin, now: Int64(time(nil))).prefix(Self.maximumCount)
        if cookies.isEmpty { return nil }
        var pairs = ownPairs(besides: Set(cookies.map(\.name)))
        // Each pair comes after two bytes: a space and what is before it.
        var length = pairs.reduce("Cookie".utf8.count) { $0 + $1.utf8.count + 2 }
        for cookie in cookies {
            let pair = "\(cookie.name)=\(cookie.value)"
            length += pair.utf8.count + 2
            guard length < Self.maximumLength else { break }
            pairs.append(pair)
        }
        return pairs.isEmpty ? nil : "Cookie: " + pairs.joined(separator: "; ")
    }

    /// Returns the pairs of the request's own field. A stored cookie of the same name is newer: a server set it in
    /// response to the field.
    private func ownPairs(besides names: Set<String>) -> [String] {
        (own ?? "").utf8.split(separator: UInt8(ascii: ";")).compactMap { part in
            let pair = String(Substring(FieldText.trimmed(part)))
            let name = String(Substring(FieldText.trimmed(pair.utf8.prefix { $0 != UInt8(ascii: "=") })))
            return pair.isEmpty || names.contains(name) ? nil : pair
        }
    }

    /// Stores the cookies that a response sets.
    func receive(_ head: ResponseHead) {
        let fields = head.values(of: "set-cookie")
        if !fields.isEmpty { storage.receive(fields, from: origin, now: Int64(time(nil))) }
    }

    private static let hostField = HTTPField.Name("Host")

    /// Returns the host without port and brackets. A `Host` field in the request takes precedence over the URL, as it
    /// does for the server.
    private static func host(of request: TransferRequest, at url: CurlURL) -> String {
        var host = (hostField.flatMap { request.headerFields[$0] } ?? url.host).utf8[...]
        if host.first == UInt8(ascii: "[") {
            host = host.dropFirst().prefix { $0 != UInt8(ascii: "]") }
        } else {
            host = host.prefix { $0 != UInt8(ascii: ":") }
        }
        return String(Substring(host))
    }
}
