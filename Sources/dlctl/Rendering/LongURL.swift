import TaskModel

/// The short form of long URLs in messages and lines for people: scheme, host and file name stay, the rest becomes `…`.
enum LongURL {
    /// The length, in characters, up to which a URL is shown whole.
    static let limit = 72
    private static let nameLimit = 40

    static func shortened(_ url: some StringProtocol) -> String {
        guard url.count > limit, let start = url.firstRange(of: "://")?.upperBound else { return String(url) }
        let rest = url[start...]
        let path = rest.drop { !"/?#".contains($0) }.prefix { !"?#".contains($0) }
        let host = rest.prefix { !"/?#".contains($0) }
        let names = path.split(separator: "/")
        let name = names.last.map { DisplayWidth.fitMiddle(String($0), nameLimit) } ?? ""
        let short =
            "\(url[..<start])\(host)/\(names.count > 1 ? "…/" : "")\(name)"
            + (path.hasSuffix("/") && !names.isEmpty ? "/" : "") + (path.endIndex < rest.endIndex ? "?…" : "")
        return short.count < url.count ? short : String(url)
    }

    /// Returns a text with the URLs in it shortened.
    static func shortened(in text: String) -> String {
        var (shown, rest) = ("", text[...])
        while let separator = rest.firstRange(of: "://") {
            let head = rest[..<separator.lowerBound]
            let scheme = head.reversed().prefix { $0.isLetter || $0.isNumber || "+-.".contains($0) }.count
            let start = rest.index(separator.lowerBound, offsetBy: -scheme)
            var url = rest[start...].prefix { !$0.isWhitespace && !"\"'`<>()".contains($0) }
            while let last = url.last, ",;:.".contains(last) { url.removeLast() }
            shown += rest[..<start] + shortened(url)
            rest = rest[max(url.endIndex, separator.upperBound)...]
        }
        return shown + rest
    }
}
