/// Redaction of secrets in URLs.
enum URLRedaction {
    /// Returns the URL without user, password and fragment, and with the values of its query hidden.
    static func redact(_ url: String, hidesQuery: Bool = true) -> String {
        // The search uses bytes, because a combining mark after `@` or `/` forms a single `Character` with it.
        var text = Array(url.utf8)[...]
        if let fragment = text.firstIndex(of: UInt8(ascii: "#")) { text = text[..<fragment] }
        let start = authority(of: text)
        let scheme = text[..<start]
        var rest = text[start...]
        let end = rest.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        if let at = rest[..<end].lastIndex(of: UInt8(ascii: "@")) { rest = rest[(at + 1)...] }
        guard hidesQuery, let mark = rest.firstIndex(of: UInt8(ascii: "?")) else { return string(scheme + rest) }
        let query = rest[(mark + 1)...].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map {
            pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            return string(name) + (name.count < pair.count ? "=…" : "")
        }
        return string(scheme + rest[...mark]) + query.joined(separator: "&")
    }

    /// The maximum length of ``excerpt(ofInvalid:)``, in Unicode scalars.
    static let longestExcerpt = 200

    /// Returns the beginning of a URL that is not valid, without secrets and control characters.
    ///
    /// The end of the authority of such a URL is uncertain, since a slash, a question mark or a number sign may be part
    /// of the password. So everything before the last `@` is omitted.
    static func excerpt(ofInvalid url: String) -> String {
        let bytes = Array(url.utf8)[...]
        var text = url
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
            text = string(bytes[..<authority(of: bytes)] + bytes[(at + 1)...])
        }
        let shown = ReadableText.line(redact(text)).unicodeScalars
        guard shown.count > longestExcerpt else { return String(shown) }
        return String(shown.prefix(longestExcerpt - 1)) + "…"
    }

    private static let slash = UInt8(ascii: "/")

    /// Returns the index at which user and host begin. libcurl accepts one, two or three slashes after the scheme, and
    /// none in a proxy URL. Without a scheme, the leading text may be a secret.
    private static func authority(of text: ArraySlice<UInt8>) -> Int {
        let name = text.prefix { !":/?@".utf8.contains($0) }
        let hasScheme = text[name.endIndex...].starts(with: ":/".utf8)
        return text[(hasScheme ? name.endIndex + 1 : text.startIndex)...].firstIndex { $0 != slash } ?? text.endIndex
    }

    private static func string(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
