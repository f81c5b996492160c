/// The line of a cookie in Netscape's cookie file format, which libcurl reads and writes. The fields are separated by
/// tabs: domain, subdomain flag, path, secure flag, expiry, name and value. An HttpOnly cookie's line starts with
/// `#HttpOnly_`.
extension Cookie {
    private static let httpOnlyMark = "#HttpOnly_"
    /// The maximum length of a line, in bytes: fields at their limits, tabs and keywords.
    static let maximumLineLength = 6144

    /// Parses a line of a cookie file.
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

    private static func seconds(_ field: Substring.UTF8View) -> Int64? {
        guard !field.isEmpty, field.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        // An expiry that overflows is clamped to the maximum.
        return Int64(Substring(field)) ?? .max
    }
}
