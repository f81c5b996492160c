import CCurl
import Glibc

/// A URL as libcurl itself parses it. If a second parser validated it, the two could disagree on its meaning.
package struct CurlURL: Sendable, Equatable {
    /// The parts, shared by all copies.
    private final class Parts: Sendable {
        let text, scheme, host, path, target, origin: String
        let port: Int

        init(
            text: String, scheme: String, host: String, port: Int, path: String, target: String, origin: String
        ) {
            self.text = text
            self.scheme = scheme
            self.host = host
            self.port = port
            self.path = path
            self.target = target
            self.origin = origin
        }
    }

    private let parts: Parts

    /// The full, normalised URL, in ASCII: other characters are percent-encoded, and those of the host converted as
    /// IDNA says (RFC 5891).
    package var text: String { parts.text }
    /// The scheme, in lower case.
    package var scheme: String { parts.scheme }
    /// The host, in lower case; an IPv6 address is in brackets.
    package var host: String { parts.host }
    package var port: Int { parts.port }
    /// The path without the query.
    package var path: String { parts.path }
    /// The path and the query as in a request (RFC 9112, section 3.2.1).
    package var target: String { parts.target }
    /// The scheme, the host and the port: `scheme://host:port`.
    package var origin: String { parts.origin }

    package static func == (one: CurlURL, other: CurlURL) -> Bool { one.text == other.text }

    /// - Parameter base: the URL that `text` is relative to, if it may be relative (RFC 3986, section 5).
    package init(_ text: String, relativeTo base: CurlURL? = nil) throws(CurlError) {
        var text = text
        if !Self.isPercentEncoded(text) {
            guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { throw CurlError(CURLE_URL_MALFORMAT) }
            text = Self.percentEncoded(text)
        }
        let handle = try CurlURLHandle()
        if let base { try handle.set(CURLUPART_URL, to: base.text) }
        try handle.set(CURLUPART_URL, to: text)
        // A fragment is for the client only (RFC 9110, section 4.2.5).
        try handle.remove(CURLUPART_FRAGMENT)
        guard var host = handle.part(CURLUPART_HOST) else { throw CurlError(CURLE_URL_MALFORMAT) }
        if !host.utf8.allSatisfy({ $0 < 0x80 }) {
            guard let ascii = ccurl_ascii_host(host) else { throw CurlError(CURLE_URL_MALFORMAT) }
            defer { free(ascii) }
            // The whole is parsed again: the ASCII form may be a number, which libcurl reads as an address.
            try handle.set(CURLUPART_HOST, to: String(cString: ascii))
            guard let whole = handle.part(CURLUPART_URL) else { throw CurlError(CURLE_URL_MALFORMAT) }
            try handle.set(CURLUPART_URL, to: whole)
            guard let address = handle.part(CURLUPART_HOST) else { throw CurlError(CURLE_URL_MALFORMAT) }
            host = address
        }
        guard let scheme = handle.part(CURLUPART_SCHEME),
            let port = handle.part(CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap({ Int($0) })
        else { throw CurlError(CURLE_URL_MALFORMAT) }
        let path = handle.part(CURLUPART_PATH) ?? "/"
        let query = handle.part(CURLUPART_QUERY)
        let target = query.map { path + "?" + $0 } ?? path
        let (lowerScheme, lowerHost) = (scheme.lowercased(), host.lowercased())
        // libcurl assembles a URL character by character, which costs more than its parsing.
        let isWeb = scheme == "http" || scheme == "https"
        let mayHaveUser = Self.mayHaveUser(text) || base.map { Self.mayHaveUser($0.text) } ?? false
        let isSimple = isWeb && !mayHaveUser && Self.isPlain(host) && path.utf8.first == UInt8(ascii: "/")
        let authority = handle.part(CURLUPART_PORT).map { host + ":" + $0 } ?? host
        let simple = scheme + "://" + authority + target
        guard let printed = isSimple ? simple : handle.part(CURLUPART_URL) else { throw CurlError(CURLE_URL_MALFORMAT) }
        // libcurl leaves out the question mark of an empty query, with which the URL is another one.
        let whole = query?.isEmpty == true && !printed.utf8.contains(UInt8(ascii: "?")) ? printed + "?" : printed
        parts = Parts(
            text: whole, scheme: lowerScheme, host: lowerHost, port: port, path: path, target: target,
            origin: lowerScheme + "://" + lowerHost + ":" + String(port))
    }

    private static func mayHaveUser(_ text: String) -> Bool { text.utf8.contains(UInt8(ascii: "@")) }

    /// Returns whether libcurl leaves a host as it is: it encodes a percent sign, and adds the zone to an IPv6 address.
    private static func isPlain(_ host: String) -> Bool {
        !host.utf8.contains { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "[") }
    }
}
