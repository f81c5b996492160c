/// The path of a file on a file server, in the form sent to the server.
///
/// The URL's path is decoded once, here, and a new URL is built from the result. The validated path is therefore the
/// one that libcurl requests.
struct RemotePath: Sendable, Equatable {
    /// The maximum length of a path, in bytes: `PATH_MAX` on Linux.
    static let maximumLength = 4096
    /// The maximum number of directories that are created on the way to a file.
    static let maximumDepth = 64
    /// The maximum length of a file name on most servers, in bytes.
    static let maximumNameLength = 255

    let scheme: RemoteScheme
    /// The decoded path. FTP: without the URL's first slash and so relative to the login directory, unless another
    /// slash follows (RFC 1738, section 3.2.2). SFTP: absolute, or relative to the user's home directory if it has no
    /// leading slash.
    let bytes: [UInt8]

    private init(scheme: RemoteScheme, bytes: [UInt8]) {
        self.scheme = scheme
        self.bytes = bytes
    }

    /// Decodes and validates a path.
    ///
    /// - Parameter path: The path of the URL, with its percent escapes.
    /// - Throws: An error if the path does not name a file, or if it contains control characters, `.` or `..` after
    ///   decoding.
    init(_ path: String, scheme: RemoteScheme) throws(TransferError) {
        var text = Substring(path)
        // Type "I" (image, RFC 1738, section 3.2.2) is always used, so it may be specified.
        if scheme.isFTP, let semicolon = text.lastIndex(of: ";"), !text[semicolon...].contains("/"),
            text[semicolon...].lowercased().hasPrefix(";type=")
        {
            guard text[semicolon...].lowercased() == ";type=i" else {
                throw TransferError(
                    .invalidRequest, "files are transferred in binary mode: remove \(text[semicolon...].prefix(16))")
            }
            text = text[..<semicolon]
        }
        var decoded = Self.decode(text.utf8.dropFirst())
        if scheme == .sftp {
            // A path that begins with `/~/` is relative to the home directory. Any other path is absolute.
            decoded = decoded.starts(with: "~/".utf8) ? Array(decoded.dropFirst(2)) : [UInt8(ascii: "/")] + decoded
        }
        guard decoded.count <= Self.maximumLength else {
            throw TransferError(.invalidRequest, "the path is longer than \(Self.maximumLength) bytes")
        }
        guard !decoded.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw TransferError(.invalidRequest, "the path contains a control character, which no command can carry")
        }
        guard let last = decoded.last, last != UInt8(ascii: "/") else {
            throw TransferError(
                .invalidRequest, "the URL names a directory, and directories are not listed: name a file in it")
        }
        let segments = decoded.split(separator: UInt8(ascii: "/"))
        guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            throw TransferError(.invalidRequest, "the path contains an encoded . or .. component: write it without")
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

    /// The ASCII URL path that libcurl decodes to this path.
    var urlPath: String {
        var text = "/"
        if scheme == .sftp, bytes.first != UInt8(ascii: "/") { text += "~/" }
        var rest = bytes[...]
        if scheme == .sftp, bytes.first == UInt8(ascii: "/") { rest = rest.dropFirst() }
        // libcurl 7.88 expands any leading `/~` to the home directory, but not after two slashes, which the server
        // treats as one.
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

    /// The path as text, for messages.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    private var nameStart: Int { bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0 }

    /// Returns a temporary name in the same directory for an incomplete file: `.NAME.dld-TOKEN.tmp`. NAME is truncated
    /// if necessary.
    ///
    /// - Parameter token: A unique text.
    func temporary(token: String) -> RemotePath {
        let tail = Array(".dld-\(token).tmp".utf8)
        var name = bytes[nameStart...].prefix(max(0, Self.maximumNameLength - tail.count - 1))
        // The name must not end in the middle of a UTF-8 sequence.
        if name.endIndex < bytes.endIndex {
            while let last = name.last, bytes[name.endIndex] & 0xC0 == 0x80, last & 0x80 != 0 { name.removeLast() }
        }
        return RemotePath(scheme: scheme, bytes: bytes[..<nameStart] + [UInt8(ascii: ".")] + name + tail)
    }

    /// The path with a trailing slash, which exists only if the path is a directory.
    var asDirectory: RemotePath { RemotePath(scheme: scheme, bytes: bytes + [UInt8(ascii: "/")]) }

    // MARK: Commands

    /// The path as a command argument. FTP uses the rest of the line. libcurl's SFTP commands (`CURLOPT_QUOTE`) use a
    /// quoted text with a backslash before quotes and backslashes.
    private var argument: [UInt8] {
        if scheme.isFTP { return bytes }
        var quoted = [UInt8(ascii: "\"")]
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { quoted.append(UInt8(ascii: "\\")) }
            quoted.append(byte)
        }
        return quoted + [UInt8(ascii: "\"")]
    }

    /// Returns the command that removes the file.
    ///
    /// - Parameter mayFail: Whether the following commands are run even if this one fails.
    func removal(mayFail: Bool) -> [UInt8] {
        (mayFail ? Array("*".utf8) : []) + Array((scheme.isFTP ? "DELE " : "rm ").utf8) + argument
    }

    /// The commands that create the directories on the way to the file, from the first one on. Each may fail, because most
    /// exist. Empty if there are none, or more than ``maximumDepth``.
    var directoryCreations: [[UInt8]] {
        let ends = bytes.indices.filter { $0 > 0 && bytes[$0] == UInt8(ascii: "/") && bytes[$0 - 1] != bytes[$0] }
        guard ends.count <= Self.maximumDepth else { return [] }
        return ends.map { end in
            Array((scheme.isFTP ? "*MKD " : "*mkdir ").utf8)
                + RemotePath(scheme: scheme, bytes: Array(bytes[..<end])).argument
        }
    }

    func renaming(to other: RemotePath) -> [[UInt8]] {
        scheme.isFTP
            ? [Array("RNFR ".utf8) + argument, Array("RNTO ".utf8) + other.argument]
            : [Array("rename ".utf8) + argument + [UInt8(ascii: " ")] + other.argument]
    }

    /// The command that requests the file's size (RFC 3659, section 4). It is empty for SFTP, where the response is not
    /// accessible.
    var sizeQuestion: [[UInt8]] { scheme.isFTP ? [Array("*SIZE ".utf8) + argument] : [] }
}
