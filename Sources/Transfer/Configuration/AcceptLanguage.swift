/// A conversion of the locale in the environment (locale(7), setlocale(3)) to HTTP language tags (RFC 9110, section
/// 12.5.4).
enum AcceptLanguage {
    static let maximumTags = 6
    /// The maximum number of bytes of a variable that are read.
    static let maximumLength = 1024

    /// - Parameter variable: returns the value of an environment variable.
    /// - Returns: language tags, in descending order of preference.
    static func tags(_ variable: (String) -> String?) -> [String] {
        // The first variable that is set determines the locale. `LANGUAGE` is only used together with one of them.
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(variable).first { !$0.isEmpty }
        guard let locale, let inForce = tag(locale.utf8.prefix(maximumLength)) else { return [] }
        var tags: [String] = []
        func add(_ tag: String) {
            if tags.count < maximumTags, !tags.contains(tag) { tags.append(tag) }
        }
        let list = variable("LANGUAGE") ?? ""
        for name in list.utf8.prefix(maximumLength).split(separator: UInt8(ascii: ":")) {
            if let tag = tag(name) { add(tag) }
        }
        add(inForce)
        // Languages without a region come after all listed tags, for servers that do not know the regional variant.
        for tag in tags { add(String(tag.prefix { $0 != "-" })) }
        return tags
    }

    /// Returns the language tag for a locale name: `de-AT` for `de_AT.UTF-8@euro`, `nil` for `C` and `POSIX`.
    private static func tag(_ name: some Collection<UInt8>) -> String? {
        let words = name.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "@") }
            .split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard let language = words.first, words.count <= 2, (2...3).contains(language.count),
            language.allSatisfy(isLetter)
        else { return nil }
        let text = String(decoding: language, as: UTF8.self).lowercased()
        guard words.count == 2 else { return text }
        let region = words[1]
        let isRegion =
            region.count == 2 && region.allSatisfy(isLetter)
            || region.count == 3 && region.allSatisfy { (0x30...0x39).contains($0) }
        return isRegion ? "\(text)-\(String(decoding: region, as: UTF8.self).uppercased())" : nil
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// Returns the field value for `Accept-Language`, such as `de-AT, de;q=0.9, en;q=0.8`.
    static func fieldValue(_ tags: [String]) -> String {
        tags.prefix(maximumTags).enumerated().map { $0 == 0 ? $1 : "\($1);q=0.\(10 - $0)" }.joined(separator: ", ")
    }
}
