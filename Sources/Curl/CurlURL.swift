import CCurl
import Glibc

/// A URL as libcurl itself parses it. If a second parser validated it, the two could disagree on its meaning.
package struct CurlURL: Sendable, Equatable {
    /// The full, normalised URL, in ASCII: other characters are percent-encoded, and those of the host converted as
    /// IDNA says (RFC 5891).
    package let text: String
    /// The scheme, in lower case.
    package let scheme: String
    /// The host, in lower case; an IPv6 address is in brackets.
    package let host: String
    package let port: Int
    /// The path without the query.
    package let path: String
    /// The path and the query as in a request (RFC 9112, section 3.2.1).
    package let target: String

    package var origin: String { "\(scheme)://\(host):\(port)" }

    /// - Parameter base: the URL that `text` is relative to, if it may be relative (RFC 3986, section 5).
    package init(_ text: String, relativeTo base: CurlURL? = nil) throws(CurlError) {
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { throw CurlError(CURLE_URL_MALFORMAT) }
        guard let handle = curl_url() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        defer { curl_url_cleanup(handle) }
        let text = Self.isPercentEncoded(text) ? text : Self.percentEncoded(text)
        if let base, curl_url_set(handle, CURLUPART_URL, base.text, 0) != CURLUE_OK {
            throw CurlError(CURLE_URL_MALFORMAT)
        }
        guard curl_url_set(handle, CURLUPART_URL, text, 0) == CURLUE_OK else {
            throw CurlError(CURLE_URL_MALFORMAT)
        }
        // A fragment is for the client only (RFC 9110, section 4.2.5).
        guard curl_url_set(handle, CURLUPART_FRAGMENT, nil, 0) == CURLUE_OK else {
            throw CurlError(CURLE_URL_MALFORMAT)
        }
        func part(_ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            guard curl_url_get(handle, part, &text, flags) == CURLUE_OK, let text else { return nil }
            defer { curl_free(text) }
            return String(cString: text)
        }
        if let host = part(CURLUPART_HOST), !host.utf8.allSatisfy({ $0 < 0x80 }) {
            guard let ascii = ccurl_ascii_host(host) else { throw CurlError(CURLE_URL_MALFORMAT) }
            defer { free(ascii) }
            // The whole is parsed again: the ASCII form may be a number, which libcurl reads as an address.
            guard curl_url_set(handle, CURLUPART_HOST, ascii, 0) == CURLUE_OK, let whole = part(CURLUPART_URL),
                curl_url_set(handle, CURLUPART_URL, whole, 0) == CURLUE_OK
            else { throw CurlError(CURLE_URL_MALFORMAT) }
        }
        let defaultPort = UInt32(CURLU_DEFAULT_PORT)
        guard let whole = part(CURLUPART_URL), let scheme = part(CURLUPART_SCHEME), let host = part(CURLUPART_HOST),
            let port = part(CURLUPART_PORT, defaultPort).flatMap({ Int($0) })
        else { throw CurlError(CURLE_URL_MALFORMAT) }
        self.text = whole
        self.scheme = scheme.lowercased()
        self.host = host.lowercased()
        self.port = port
        let path = part(CURLUPART_PATH) ?? "/"
        self.path = path
        target = part(CURLUPART_QUERY).map { "\(path)?\($0)" } ?? path
    }
}
