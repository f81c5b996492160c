/// Takes out of a URL what only its owner should see.
enum URLRedaction {
    /// - Returns: the URL without user, password and fragment, and with the values of its query hidden.
    static func redact(_ url: String, hidesQuery: Bool = true) -> String {
        var text = Substring(url)
        if let fragment = text.firstIndex(of: "#") { text = text[..<fragment] }
        // libcurl takes one slash for two, and three too; where there is no scheme, what stands there may be a secret.
        let name = text.prefix { $0 != ":" && $0 != "/" && $0 != "?" && $0 != "@" }
        let hasScheme = text[name.endIndex...].starts(with: ":/")
        let start = (hasScheme ? text[name.endIndex...].dropFirst() : text).drop { $0 == "/" }.startIndex
        let scheme = text[..<start]
        var rest = text[start...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        if let at = rest[..<end].lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        guard hidesQuery, let mark = rest.firstIndex(of: "?") else { return String(scheme + rest) }
        let query = rest[rest.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false).map {
            pair in
            pair.contains("=") ? pair.prefix { $0 != "=" } + "=…" : String(pair)
        }
        return String(scheme + rest[...mark]) + query.joined(separator: "&")
    }
}
