/// The schemes of file servers, as opposed to HTTP.
enum RemoteScheme: String, Sendable {
    case ftp, ftps, sftp

    /// Creates the scheme of a URL.
    ///
    /// - Returns: `nil` for another scheme. The rest of the URL is not validated.
    init?(of url: String) {
        // Every request asks this, and nearly all of them use HTTP.
        guard let first = url.utf8.first, first | 0x20 != UInt8(ascii: "h") else { return nil }
        let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }
        guard scheme.count <= 4 else { return nil }
        self.init(rawValue: String(decoding: scheme.map { $0 | 0x20 }, as: UTF8.self))
    }

    var isFTP: Bool { self != .sftp }
}
