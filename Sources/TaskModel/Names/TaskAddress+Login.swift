extension TaskAddress {
    /// The user name and password in the URL's authority, percent-decoded (RFC 3986, section 3.2.1). This is a secret.
    package var login: (user: String, password: String?)? {
        let rest = url.utf8.dropFirst(scheme.utf8.count + "://".utf8.count)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { return nil }
        let parts = authority[..<at].split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: FileName.percentDecoded(Array($0)[...]), as: UTF8.self) }
        guard let user = texts.first, !user.isEmpty else { return nil }
        return (user, texts.count > 1 ? texts[1] : nil)
    }
}
