/// The contents of a `Set-Cookie` field (RFC 6265, section 5.2).
struct SetCookie {
    /// The maximum length of a field value, in bytes. Longer fields are ignored, as by libcurl.
    static let maximumLength = 5000

    let name: String
    let value: String
    /// The `Domain` attribute in lower case without its leading dot; `nil` if it is missing or empty.
    private(set) var domain: String?
    /// The `Path` attribute; `nil` for the default path.
    private(set) var path: String?
    /// The unparsed `Expires` attribute.
    private(set) var expires: String?
    /// The `Max-Age` attribute in seconds. It takes precedence over ``expires``.
    private(set) var maxAge: Int64?
    private(set) var isSecure = false
    private(set) var isHTTPOnly = false

    /// Parses a field value.
    ///
    /// - Returns: `nil` if the value has no name, no `=` after the name, or is too long.
    init?(_ field: String) {
        let parts = field.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard field.utf8.count <= Self.maximumLength, let pair = parts.first else { return nil }
        let (name, value) = Self.pair(pair)
        guard !name.isEmpty, let value else { return nil }
        (self.name, self.value) = (name, value)
        for part in parts.dropFirst() {
            let (attribute, value) = Self.pair(part)
            add(attribute.lowercased(), value ?? "")
        }
    }

    /// Adds an attribute. The last of several with the same name counts.
    private mutating func add(_ attribute: String, _ value: String) {
        switch attribute {
        case "domain":
            let name = value.utf8.first == UInt8(ascii: ".") ? String(value.dropFirst()) : value
            domain = name.isEmpty ? nil : name.lowercased()
        case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
        case "expires": expires = value
        case "max-age": if let seconds = Self.seconds(value) { maxAge = seconds }
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        default: break
        }
    }

    /// Returns the text before and after the first `=`, without surrounding blanks; without `=` there is no value.
    private static func pair(_ part: Substring.UTF8View) -> (String, String?) {
        guard let sign = part.firstIndex(of: UInt8(ascii: "=")) else { return (text(part), nil) }
        return (text(part[..<sign]), text(part[part.index(after: sign)...]))
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(FieldText.trimmed(bytes))) }

    /// Returns a `Max-Age` (section 5.2.2); a negative one is 0, and one that overflows is the maximum.
    private static func seconds(_ value: String) -> Int64? {
        let digits = value.utf8.first == UInt8(ascii: "-") ? value.utf8.dropFirst() : value.utf8[...]
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.count < value.utf8.count ? 0 : Int64(value) ?? .max
    }
}
