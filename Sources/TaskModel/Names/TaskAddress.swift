/// The URL of a task, parsed far enough to validate it: scheme, host and port (RFC 3986, section 3).
///
/// The parser works on bytes, since a `Character` may combine several control characters (CR LF is one `Character`).
public struct TaskAddress: Sendable, Equatable {
    /// The supported URL schemes.
    public static let schemes = ["http", "https", "ftp", "ftps", "sftp"]
    /// The longest accepted URL, in bytes.
    public static let maximumLength = 8192
    /// The longest name of a zone of IPv6 addresses, in bytes: that of an interface.
    private static let maximumZoneLength = 15

    public let scheme: String
    /// The host in lower case. An IPv6 address keeps its brackets, and its zone as `%25ZONE` (RFC 6874).
    public let host: String
    public let port: Int
    /// The URL as given, without spaces at its ends. The engine percent-encodes it (WHATWG URL Standard).
    public let url: String
    /// The URL for display, without its user info and without the values of secret parameters in query,
    /// fragment and path.
    public let redacted: String

    /// Whether the URL names a directory on a file server: the scheme is FTP, FTPS or SFTP, and the path is empty or
    /// ends in a slash.
    public var namesDirectory: Bool {
        guard scheme == "ftp" || scheme == "ftps" || scheme == "sftp" else { return false }
        let rest = url.utf8.dropFirst(scheme.utf8.count + "://".utf8.count)
        return rest.last == UInt8(ascii: "/") || !rest.contains(UInt8(ascii: "/"))
    }

    /// Whether the protocol is encrypted.
    public var isEncrypted: Bool { scheme != "http" && scheme != "ftp" }

    /// Whether the scheme is `http` or `https`.
    public var isHTTP: Bool { scheme == "http" || scheme == "https" }

    /// The key of per-host limits, holds and circuit breakers: scheme, host and port.
    public var hostKey: String { "\(scheme)://\(host):\(port)" }

    /// Parses and validates a URL.
    ///
    /// - Throws: ``FieldError`` for `field`.
    public init(parsing url: String, field: String = "url") throws(FieldError) {
        let url = Self.trimmed(url)
        var text = url
        let parsed: Result<Parts, Refusal> = text.withUTF8 { bytes in
            do throws(Refusal) {
                return .success(try Parts(bytes))
            } catch {
                return .failure(error)
            }
        }
        let parts: Parts
        do throws(Refusal) {
            parts = try parsed.get()
        } catch {
            throw FieldError(field: field, code: error.code, message: error.message)
        }
        scheme = parts.scheme
        host = parts.host
        port = parts.port ?? Self.defaultPort(of: scheme)
        self.url = url
        redacted =
            parts.userInfo == nil && !parts.hasQuery && !url.utf8.contains(where: { $0.beginsParameters })
            ? url : Self.redact(Array(url.utf8), userInfo: parts.userInfo)
    }

    private struct Refusal: Error {
        var message: String
        var code: ErrorCode = .invalid

        init(_ message: String, code: ErrorCode = .invalid) {
            self.message = message
            self.code = code
        }
    }

    /// The components of a URL, parsed in one pass without copying the bytes, since the queue can hold millions of
    /// URLs.
    private struct Parts {
        var scheme: String
        var host: String
        var port: Int?
        /// The byte range of the user info, without the `@`.
        var userInfo: Range<Int>?
        var hasQuery: Bool

        init(_ bytes: UnsafeBufferPointer<UInt8>) throws(Refusal) {
            guard !bytes.isEmpty else { throw Refusal("is empty; write a URL such as https://example.org/file") }
            guard bytes.count <= maximumLength else { throw Refusal("is longer than \(maximumLength) bytes") }
            guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
                throw Refusal("contains a control character; percent-encode it")
            }
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0,
                bytes[..<colon].allSatisfy({
                    $0.isLetterOrDigit || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-")
                })
            else { throw Refusal("has no scheme; begin it with https:// or http://") }
            scheme = Self.lowercased(bytes[..<colon])
            guard scheme == "http" || scheme == "https" || schemes.contains(scheme) else {
                throw Refusal(
                    "the protocol \(scheme) is not allowed; use http, https, ftp, ftps or sftp",
                    code: .protocolNotAllowed)
            }
            let start = colon + 3
            guard bytes.count >= start, bytes[colon + 1] == UInt8(ascii: "/"), bytes[colon + 2] == UInt8(ascii: "/")
            else { throw Refusal("has no // after \(scheme):") }
            let end = bytes[start...].firstIndex { $0.endsAuthority } ?? bytes.count
            let authority = bytes[start..<end]
            // Some URL parsers end the host at a backslash and others do not, so the host validated here could differ
            // from the host that is contacted.
            guard !authority.contains(UInt8(ascii: "\\")) else { throw Refusal("contains a backslash before its path") }
            let at = authority.lastIndex(of: UInt8(ascii: "@"))
            guard !authority.contains(UInt8(ascii: " ")) else { throw Refusal("contains a space before its path") }
            userInfo = at.map { start..<$0 }
            hasQuery = bytes[end...].contains(UInt8(ascii: "?"))
            (host, port) = try Self.split(at.map { authority[($0 + 1)...] } ?? authority)
        }

        private static func split(
            _ hostAndPort: Slice<UnsafeBufferPointer<UInt8>>
        ) throws(Refusal) -> (host: String, port: Int?) {
            var hostBytes = hostAndPort
            var portBytes = hostAndPort[hostAndPort.endIndex...]
            var zone = ""
            if hostAndPort.first == UInt8(ascii: "[") {
                guard let close = hostAndPort.firstIndex(of: UInt8(ascii: "]")) else {
                    throw Refusal("the IPv6 address has no closing bracket")
                }
                hostBytes = hostAndPort[...close]
                var inside = hostBytes.dropFirst().dropLast()
                if let percent = inside.firstIndex(of: UInt8(ascii: "%")) {
                    (zone, inside) = (try self.zone(inside[(percent + 1)...]), inside[..<percent])
                }
                guard inside.contains(UInt8(ascii: ":")),
                    inside.allSatisfy({ $0.isHexDigit || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
                else { throw Refusal("the text in brackets is not an IPv6 address") }
                let tail = hostAndPort[(close + 1)...]
                guard tail.isEmpty || tail.first == UInt8(ascii: ":") else { throw Refusal("the port is not a number") }
                portBytes = tail.dropFirst()
            } else {
                if let colon = hostAndPort.firstIndex(of: UInt8(ascii: ":")) {
                    hostBytes = hostAndPort[..<colon]
                    portBytes = hostAndPort[(colon + 1)...]
                }
                guard hostBytes.count <= 253 else { throw Refusal("the host name is longer than 253 bytes") }
                // A percent sign is refused. libcurl would decode it, so that one host could appear under many names.
                guard hostBytes.allSatisfy({ $0.isLetterOrDigit || $0 >= 0x80 || $0.isUnreservedMark }) else {
                    throw Refusal("the host name contains an invalid character")
                }
            }
            guard !hostBytes.isEmpty, !hostBytes.elementsEqual(CollectionOfOne(UInt8(ascii: "."))) else {
                throw Refusal("has no host; write it in full, as in https://example.org/file")
            }
            var host = lowercased(hostBytes)
            if !zone.isEmpty { host = String(host.prefix { $0 != "%" }) + "%25\(zone)]" }
            if portBytes.isEmpty { return (host, nil) }
            guard portBytes.count <= 5, portBytes.allSatisfy({ $0.isDigit }),
                case let port = portBytes.reduce(0, { $0 * 10 + Int($1 - 0x30) }), (1...65535).contains(port)
            else { throw Refusal("the port is not a number from 1 to 65535") }
            return (host, port)
        }

        /// Parses what follows the percent sign of an IPv6 address: a zone, with or without the `25` by which the sign
        /// itself is encoded.
        ///
        /// - Returns: the zone in lower case.
        private static func zone(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(Refusal) -> String {
            let isEncoded = bytes.count > 2 && bytes.starts(with: "25".utf8)
            let zone = isEncoded ? bytes.dropFirst(2) : bytes
            guard (1...maximumZoneLength).contains(zone.count),
                zone.allSatisfy({ $0.isLetterOrDigit || $0.isUnreservedMark })
            else { throw Refusal("the zone of the IPv6 address is not the name of an interface") }
            return lowercased(zone)
        }

        private static func lowercased(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
            let text = String(decoding: bytes, as: UTF8.self)
            let isLower = bytes.allSatisfy { $0 < 0x80 && !(0x41...0x5A).contains($0) }
            return isLower ? text : text.lowercased()
        }
    }

    private static func trimmed(_ url: String) -> String {
        let space = UInt8(ascii: " ")
        guard url.utf8.first == space || url.utf8.last == space else { return url }
        return String(url.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }

    private static func defaultPort(of scheme: String) -> Int {
        switch scheme {
        case "https": 443
        case "ftp": 21
        case "ftps": 990
        case "sftp": 22
        default: 80
        }
    }

    /// The names of parameters whose values grant access: signatures, tokens, keys, sessions.
    private static let secretParameters: Set<String> = [
        "x-amz-signature", "x-amz-security-token", "x-amz-credential", "x-goog-signature", "x-goog-credential",
        "x-oss-signature", "x-oss-security-token", "signature", "q-signature", "sig", "token", "access_token",
        "access-token", "auth_token", "authtoken", "oauth_token", "private_token", "job_token", "auth",
        "authorization", "key", "apikey", "api_key", "password", "passwd", "pass", "pwd", "pw", "passphrase", "secret",
        "client_secret", "policy", "hdnts", "hdnea", "jwt", "refresh_token", "id_token", "session_token", "api-key",
        "x-api-key", "access_key", "session", "sessionid", "session_id", "sid", "jsessionid", "phpsessid",
    ]

    /// Returns a segment of a path without its parameters (RFC 3986, section 3.3) whose values are secret.
    static func withoutSecretParameters(_ segment: ArraySlice<UInt8>) -> [UInt8] {
        let separator = UInt8(ascii: ";")
        let parts = segment.split(separator: separator, omittingEmptySubsequences: false)
        let shown = parts.prefix(1) + parts.dropFirst().filter { secretValue(of: $0) == nil }
        return Array(shown.joined(separator: [separator]))
    }

    /// Returns the index at which the value of a parameter (`name=value`) begins, if the name is that of a secret.
    private static func secretValue(of parameter: ArraySlice<UInt8>) -> Int? {
        guard let equals = parameter.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let name = String(decoding: FileName.percentDecoded(parameter[..<equals]), as: UTF8.self)
        return secretParameters.contains(name.lowercased()) ? equals + 1 : nil
    }

    private static func redact(_ bytes: [UInt8], userInfo: Range<Int>?) -> String {
        var shown: [UInt8] = []
        shown.reserveCapacity(bytes.count)
        var rest = bytes[...]
        if let userInfo {
            shown += bytes[..<userInfo.lowerBound]
            rest = bytes[(userInfo.upperBound + 1)...]
        }
        let fragment = rest.firstIndex(of: UInt8(ascii: "#")) ?? rest.endIndex
        let query = rest[..<fragment].firstIndex(of: UInt8(ascii: "?")) ?? fragment
        redactPath(rest[..<query], into: &shown)
        for part in [rest[query..<fragment], rest[fragment...]] where !part.isEmpty {
            shown += part.prefix(1)
            redactQuery(part.dropFirst(), into: &shown)
        }
        return String(decoding: shown, as: UTF8.self)
    }

    private static let replacement = Array("REDACTED".utf8)

    /// Appends a path, with the values of secret parameters replaced up to the end of their segments.
    private static func redactPath(_ path: ArraySlice<UInt8>, into shown: inout [UInt8]) {
        let parameters = path.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        for (index, parameter) in parameters.enumerated() {
            if index > 0 { shown.append(UInt8(ascii: ";")) }
            guard let value = secretValue(of: parameter) else {
                shown += parameter
                continue
            }
            shown += parameter[..<value] + replacement + parameter[value...].drop { $0 != UInt8(ascii: "/") }
        }
    }

    /// Appends a query or a fragment, with the values of secret parameters replaced. Parameters are separated by `&`;
    /// old programs also write `;`, which may as well be part of a value.
    private static func redactQuery(_ query: ArraySlice<UInt8>, into shown: inout [UInt8]) {
        let pieces = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        for (index, piece) in pieces.enumerated() {
            if index > 0 { shown.append(UInt8(ascii: "&")) }
            let parameters = piece.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            guard let value = parameters.lazy.compactMap({ secretValue(of: $0) }).first else {
                shown += piece
                continue
            }
            shown += piece[..<value] + replacement
        }
    }
}

extension UInt8 {
    package var isDigit: Bool { (0x30...0x39).contains(self) }
    package var isHexDigit: Bool { isDigit || (0x41...0x46).contains(self & 0xDF) }
    /// Whether the byte ends the authority (RFC 3986, section 3.2).
    fileprivate var endsAuthority: Bool {
        self == UInt8(ascii: "/") || self == UInt8(ascii: "?") || self == UInt8(ascii: "#")
    }

    /// Whether parameters may follow the byte, which is not in a query.
    fileprivate var beginsParameters: Bool { self == UInt8(ascii: "#") || self == UInt8(ascii: ";") }

    /// Whether the byte is an unreserved punctuation mark (RFC 3986, section 2.3).
    fileprivate var isUnreservedMark: Bool {
        self == UInt8(ascii: "-") || self == UInt8(ascii: ".") || self == UInt8(ascii: "_") || self == UInt8(ascii: "~")
    }

    package var isLetterOrDigit: Bool { isDigit || (0x41...0x5A).contains(self & 0xDF) }
}
