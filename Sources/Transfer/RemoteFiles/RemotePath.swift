/// Where a file lies on a file server, as the server is to hear it.
///
/// The URL's path is decoded once, here, and put into a new URL from that: what is judged is what libcurl asks for.
struct RemotePath: Sendable, Equatable {
    /// Bytes; longer than what a path may have on any Linux (`PATH_MAX`).
    static let maximumLength = 4096
    /// Bytes that a file's name may have on most servers.
    static let maximumNameLength = 255

    let scheme: RemoteScheme
    /// FTP: without the URL's first slash, and so relative to where the login leads, unless it begins with another
    /// one (RFC 1738, section 3.2.2). SFTP: from the root, or without a slash from the user's home.
    let bytes: [UInt8]

    private init(scheme: RemoteScheme, bytes: [UInt8]) {
        self.scheme = scheme
        self.bytes = bytes
    }

    /// - Parameter path: of the URL, with its percent escapes.
    /// - Throws: for what names no file, or hides what would reach the server as something else.
    init(_ path: String, scheme: RemoteScheme) throws(TransferError) {
        var text = Substring(path)
        // "I" says what is always done: the file is transferred as it is (RFC 1738, section 3.2.2).
        if scheme.isFTP, let semicolon = text.lastIndex(of: ";"), !text[semicolon...].contains("/"),
            text[semicolon...].lowercased().hasPrefix(";type=")
        {
            guard text[semicolon...].lowercased() == ";type=i" else {
                throw TransferError(
                    .invalidRequest, "files are transferred as they are: take \(text[semicolon...].prefix(16)) away")
            }
            text = text[..<semicolon]
        }
        var decoded = Self.decode(text.utf8.dropFirst())
        if scheme == .sftp {
            // `/~/` is the home; any other path is from the root.
            decoded = decoded.starts(with: "~/".utf8) ? Array(decoded.dropFirst(2)) : [UInt8(ascii: "/")] + decoded
        }
        guard decoded.count <= Self.maximumLength else {
            throw TransferError(.invalidRequest, "the path is longer than \(Self.maximumLength) bytes")
        }
        guard !decoded.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw TransferError(.invalidRequest, "the path holds a control character, which no command can carry")
        }
        guard let last = decoded.last, last != UInt8(ascii: "/") else {
            throw TransferError(
                .invalidRequest, "the URL names a directory, and directories are not listed: name a file in it")
        }
        let segments = decoded.split(separator: UInt8(ascii: "/"))
        guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            throw TransferError(.invalidRequest, "the path holds . or .. in disguise: write it without them")
        }
        self.init(scheme: scheme, bytes: decoded)
    }

    private static func decode(_ text: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first.flatMap(digit),
                let low = rest.dropFirst().first.flatMap(digit)
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// The path of a URL that libcurl reads as this very path, ASCII alone.
    var urlPath: String {
        var text = "/"
        if scheme == .sftp, bytes.first != UInt8(ascii: "/") { text += "~/" }
        var rest = bytes[...]
        if scheme == .sftp, bytes.first == UInt8(ascii: "/") { rest = rest.dropFirst() }
        // libcurl 7.88 takes any `/~` for the home; after two slashes, which the system takes for one, it does not.
        if scheme == .sftp, rest.startIndex > 0, rest.first == UInt8(ascii: "~") { text += "/" }
        for byte in rest {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                if "-._/".utf8.contains(byte) {
                    text.unicodeScalars.append(Unicode.Scalar(byte))
                } else {
                    text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
                }
            }
        }
        return text
    }

    /// For people.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    private var nameStart: Int { bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0 }

    /// A name beside this one for what is not whole yet: `.NAME.dld-TOKEN.tmp`, NAME as long as there is room for it.
    ///
    /// - Parameter token: nobody else's.
    func temporary(token: String) -> RemotePath {
        let tail = Array(".dld-\(token).tmp".utf8)
        var name = bytes[nameStart...].prefix(max(0, Self.maximumNameLength - tail.count - 1))
        // Not in the middle of a character of UTF-8.
        if name.endIndex < bytes.endIndex {
            while let last = name.last, bytes[name.endIndex] & 0xC0 == 0x80, last & 0x80 != 0 { name.removeLast() }
        }
        return RemotePath(scheme: scheme, bytes: bytes[..<nameStart] + [UInt8(ascii: ".")] + name + tail)
    }

    /// What is listed where this path names a directory, and is found nowhere else.
    var asDirectory: RemotePath { RemotePath(scheme: scheme, bytes: bytes + [UInt8(ascii: "/")]) }

    // MARK: Commands

    /// What follows a command's word: FTP takes the rest of the line; libcurl's SFTP takes what stands in quotes,
    /// with a backslash before quotes and backslashes (`CURLOPT_QUOTE`).
    private var argument: [UInt8] {
        if scheme.isFTP { return bytes }
        var quoted = [UInt8(ascii: "\"")]
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { quoted.append(UInt8(ascii: "\\")) }
            quoted.append(byte)
        }
        return quoted + [UInt8(ascii: "\"")]
    }

    /// - Parameter mayFail: whether what comes after it is done all the same.
    func removal(mayFail: Bool) -> [UInt8] {
        (mayFail ? Array("*".utf8) : []) + Array((scheme.isFTP ? "DELE " : "rm ").utf8) + argument
    }

    func renaming(to other: RemotePath) -> [[UInt8]] {
        scheme.isFTP
            ? [Array("RNFR ".utf8) + argument, Array("RNTO ".utf8) + other.argument]
            : [Array("rename ".utf8) + argument + [UInt8(ascii: " ")] + other.argument]
    }

    /// Asks how long the file is (RFC 3659, section 4), where the protocol lets us see the answer.
    var sizeQuestion: [[UInt8]] { scheme.isFTP ? [Array("*SIZE ".utf8) + argument] : [] }
}
