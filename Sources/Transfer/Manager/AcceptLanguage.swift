/// Languages as the environment names them (locale(7), setlocale(3)) and as HTTP does (RFC 9110, section 12.5.4).
enum AcceptLanguage {
    static let maximumTags = 6
    /// Bytes of a variable that are looked at.
    static let maximumLength = 1024

    /// - Parameter variable: the environment's.
    /// - Returns: language tags, the most wanted first.
    static func tags(_ variable: (String) -> String?) -> [String] {
        // The first of them that is set says which locale is in force; `LANGUAGE` counts beside it alone.
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
        // A server that knows the language and not the country's form of it: after all that was named.
        for tag in tags { add(String(tag.prefix { $0 != "-" })) }
        return tags
    }

    /// `de_AT.UTF-8@euro` is `de-AT`; `C` and `POSIX` are no language.
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

    /// `de-AT, de;q=0.9, en;q=0.8`
    static func fieldValue(_ tags: [String]) -> String {
        tags.prefix(maximumTags).enumerated().map { $0 == 0 ? $1 : "\($1);q=0.\(10 - $0)" }.joined(separator: ", ")
    }
}
