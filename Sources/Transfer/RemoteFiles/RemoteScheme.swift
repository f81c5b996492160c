/// The protocols whose servers keep files, and not HTTP's resources.
enum RemoteScheme: String, Sendable {
    case ftp, ftps, sftp

    /// - Returns: `nil` for a URL of another scheme; the rest of it is not looked at.
    init?(of url: String) {
        let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }
        guard scheme.count <= 4 else { return nil }
        self.init(rawValue: String(decoding: scheme.map { $0 | 0x20 }, as: UTF8.self))
    }

    var isFTP: Bool { self != .sftp }
}
