/// Takes out of a URL what only its owner should see.
enum URLRedaction {
    /// - Returns: the URL without user, password and fragment, and with the values of its query hidden.
    static func redact(_ url: String, hidesQuery: Bool = true) -> String {
        // By bytes: a mark that combines with an @ or a slash makes one `Character` of both.
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

    private static let slash = UInt8(ascii: "/")

    /// Where user and host begin: libcurl takes one, two or three slashes after the scheme, and a proxy without any. Where
    /// there is no scheme, what stands there may be a secret.
    private static func authority(of text: ArraySlice<UInt8>) -> Int {
        let name = text.prefix { !":/?@".utf8.contains($0) }
        let hasScheme = text[name.endIndex...].starts(with: ":/".utf8)
        return text[(hasScheme ? name.endIndex + 1 : text.startIndex)...].firstIndex { $0 != slash } ?? text.endIndex
    }

    private static func string(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
