import CCurl
import Glibc

/// A URL as libcurl itself parses it. If a second parser validated it, the two could disagree on its meaning.
package struct CurlURL: Sendable, Equatable {
    /// The parts, shared by all copies.
    private final class Parts: Sendable {
        let text, scheme, host, path, target, origin: String
        let port: Int
        let parsed: CurlURLHandle
        /// Whether libcurl sends the same for ``parsed`` as for ``text``.
        let isExact: Bool

        init(
            text: String, scheme: String, host: String, port: Int, path: String, target: String, origin: String,
            parsed: consuming CurlURLHandle, isExact: Bool
        ) {
            self.text = text
            self.scheme = scheme
            self.host = host
            self.port = port
            self.path = path
            self.target = target
            self.origin = origin
            self.parsed = parsed
            self.isExact = isExact
        }
    }

    private let parts: Parts

    /// The full, normalised URL, in ASCII: other characters are percent-encoded, and those of the host converted as
    /// IDNA says (RFC 5891).
    package var text: String { parts.text }
    /// The scheme, in lower case.
    package var scheme: String { parts.scheme }
    /// The host, in lower case; an IPv6 address is in brackets, without its zone.
    package var host: String { parts.host }
    package var port: Int { parts.port }
    /// The path without the query.
    package var path: String { parts.path }
    /// The path and the query as in a request (RFC 9112, section 3.2.1).
    package var target: String { parts.target }
    /// The scheme, the host and the port: `scheme://host:port`. An IPv6 address has its zone (RFC 6874), since the same
    /// address is another host in another zone.
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
        if !Self.all(of: host, { $0 < 0x80 }) {
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
        let (lowerScheme, lowerHost) = (Self.lowercased(scheme), Self.lowercased(host))
        // libcurl assembles a URL character by character, which costs more than its parsing.
        let isWeb = scheme == "http" || scheme == "https"
        let isSimple = isWeb && !handle.hasUser && Self.isPlain(host) && path.utf8.first == UInt8(ascii: "/")
        let simple = isSimple ? Self.assembled(scheme, host, port: handle.part(CURLUPART_PORT), target) : nil
        guard let printed = simple ?? handle.part(CURLUPART_URL) else { throw CurlError(CURLE_URL_MALFORMAT) }
        // libcurl leaves out the question mark of an empty query, with which the URL is another one.
        let isEmptyQuery = query?.isEmpty == true
        let whole = isEmptyQuery && !printed.utf8.contains(UInt8(ascii: "?")) ? printed + "?" : printed
        let zoned = handle.part(CURLUPART_ZONEID).map { String(lowerHost.dropLast()) + "%25\(Self.lowercased($0))]" }
        parts = Parts(
            text: whole, scheme: lowerScheme, host: lowerHost, port: port, path: path, target: target,
            origin: Self.assembled(lowerScheme, zoned ?? lowerHost, port: String(port), ""),
            parsed: handle, isExact: isSimple && !isEmptyQuery)
    }

    /// Returns whether this value is a copy of another one, and not an equal result of another parsing.
    func isCopy(of other: CurlURL) -> Bool { parts === other.parts }

    /// Whether the URL has a user or a password.
    var hasUser: Bool { parts.parsed.hasUser }

    /// Calls `body` with the parsed URL, which libcurl may use for as long as a copy of this value exists; with `nil`
    /// if it has to parse the text.
    func withParsed<Answer>(_ body: (OpaquePointer?) -> Answer) -> Answer {
        body(parts.isExact ? parts.parsed.raw : nil)
    }

    private static func assembled(_ scheme: String, _ host: String, port: String?, _ target: String) -> String {
        let size = scheme.utf8.count + host.utf8.count + (port?.utf8.count ?? 0) + target.utf8.count + 4
        // Several times as fast as appending strings.
        return String(unsafeUninitializedCapacity: size) { text in
            var count = copy(scheme, to: text)
            count += copy("://", to: text[count...])
            count += copy(host, to: text[count...])
            if let port {
                count += copy(":", to: text[count...])
                count += copy(port, to: text[count...])
            }
            return count + copy(target, to: text[count...])
        }
    }

    /// Copies a text to the beginning of a buffer that has room for it.
    ///
    /// - Returns: the number of bytes copied.
    private static func copy(_ text: String, to space: Slice<UnsafeMutableBufferPointer<UInt8>>) -> Int {
        copy(text, to: UnsafeMutableBufferPointer(rebasing: space))
    }

    private static func copy(_ text: String, to space: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var text = text
        return text.withUTF8 { bytes in space.initialize(fromContentsOf: bytes) }
    }

    private static func lowercased(_ text: String) -> String {
        all(of: text) { !(0x41...0x5A).contains($0) } ? text : text.lowercased()
    }

    /// Returns whether libcurl leaves a host as it is: it encodes a percent sign, and adds the zone to an IPv6 address.
    private static func isPlain(_ host: String) -> Bool {
        all(of: host) { $0 != UInt8(ascii: "%") && $0 != UInt8(ascii: "[") }
    }
}
