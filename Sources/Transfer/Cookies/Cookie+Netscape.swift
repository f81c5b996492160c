/// The line of a cookie in Netscape's cookie file format, which libcurl reads and writes. The fields are separated by
/// tabs: domain, subdomain flag, path, secure flag, expiry, name and value. An HttpOnly cookie's line starts with
/// `#HttpOnly_`.
extension Cookie {
    private static let httpOnlyMark = "#HttpOnly_"
    /// The maximum length of a line, in bytes: fields at their limits, tabs and keywords.
    static let maximumLineLength = 6144

    /// Parses a line of a cookie file. The expiry may have a fraction, which is cut off; an empty or negative one is that of a
    /// session cookie.
    ///
    /// - Parameter line: A single line, with or without its line ending.
    /// - Returns: `nil` for a comment and for an invalid cookie; see
    ///   ``init(name:value:domain:includesSubdomains:path:isSecure:isHTTPOnly:expires:)``.
    public init?(netscape line: String) {
        var bytes = line.utf8[...]
        guard bytes.count <= Self.maximumLineLength else { return nil }
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        let isHTTPOnly = bytes.starts(with: Self.httpOnlyMark.utf8)
        if isHTTPOnly { bytes.removeFirst(Self.httpOnlyMark.utf8.count) }
        let fields = bytes.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
        // Some programs omit the tab before an empty value.
        guard (6...7).contains(fields.count), let includesSubdomains = Self.flag(fields[1]),
            let isSecure = Self.flag(fields[3]), let expires = Self.seconds(fields[4])
        else { return nil }
        self.init(
            name: String(Substring(fields[5])), value: fields.count == 7 ? String(Substring(fields[6])) : "",
            domain: String(Substring(fields[0])), includesSubdomains: includesSubdomains,
            path: String(Substring(fields[2])), isSecure: isSecure, isHTTPOnly: isHTTPOnly, expires: expires)
    }

    /// The cookie's line, without a line ending. Parsing it gives an equal cookie.
    public var netscapeLine: String {
        [
            (isHTTPOnly ? Self.httpOnlyMark : "") + (includesSubdomains ? "." : "") + domain,
            includesSubdomains ? "TRUE" : "FALSE", path, isSecure ? "TRUE" : "FALSE", String(expires), name, value,
        ].joined(separator: "\t")
    }

    private static func flag(_ field: Substring.UTF8View) -> Bool? {
        let word = field.map(lowercase)
        if word.elementsEqual("true".utf8) { return true }
        return word.elementsEqual("false".utf8) ? false : nil
    }

    /// Returns an expiry in whole seconds. Browsers' interfaces give fractions, and -1 for a session cookie; programs that
    /// write files from them leave both as they are, or leave the field empty.
    private static func seconds(_ field: Substring.UTF8View) -> Int64? {
        if field.isEmpty { return 0 }
        let isNegative = field.first == UInt8(ascii: "-")
        let parts = (isNegative ? field.dropFirst() : field)
            .split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, !whole.isEmpty,
            parts.allSatisfy({ part in part.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        // An expiry that overflows is clamped to the maximum.
        return isNegative ? 0 : Int64(Substring(whole)) ?? .max
    }
}
