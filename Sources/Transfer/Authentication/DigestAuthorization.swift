import Crypto
public import HTTPTypes

/// The client side of the Digest scheme (RFC 7616 and its predecessor RFC 2617), for one challenge of a server.
///
/// The type generates no random values and keeps no counter. The caller supplies the client nonce and the nonce count,
/// so one challenge serves many requests until its nonce goes stale.
public struct DigestAuthorization: Sendable, Equatable {
    /// The hash algorithm and its key derivation. SHA-512-256, which is optional in RFC 7616, is not supported.
    public enum Algorithm: String, Sendable, CaseIterable {
        /// MD5, the algorithm of RFC 2617. It is weak but still the most common.
        case md5 = "MD5"
        /// `MD5-sess`: the first digest also covers both nonces (RFC 7616, section 3.4.2).
        case md5Session = "MD5-sess"
        /// SHA-256, which RFC 7616 prefers.
        case sha256 = "SHA-256"
        /// `SHA-256-sess`: the first digest also covers both nonces (RFC 7616, section 3.4.2).
        case sha256Session = "SHA-256-sess"

        /// Whether the key is bound to the nonces of the session's first request.
        var isSession: Bool { self == .md5Session || self == .sha256Session }

        var isStrong: Bool { self == .sha256 || self == .sha256Session }

        /// Returns the digest of a text in lower-case hexadecimal.
        func hash(_ text: String) -> String {
            isStrong
                ? Self.hex(SHA256.hash(data: Array(text.utf8)))
                : Self.hex(Insecure.MD5.hash(data: Array(text.utf8)))
        }

        private static func hex(_ digest: some Sequence<UInt8>) -> String {
            let digits = Array("0123456789abcdef".utf8)
            return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
        }
    }

    /// The realm as sent by the server. The digests cover it.
    public let realm: String
    /// The server nonce, as sent.
    public let nonce: String
    /// The opaque value, to be sent back unchanged.
    public let opaque: String?
    /// The challenge's algorithm; ``Algorithm/md5`` if it has none (RFC 7616, section 3.3).
    public let algorithm: Algorithm
    /// Whether the response digest covers the client nonce and the nonce count (`qop=auth`). Otherwise the digest is
    /// that of RFC 2069.
    public let hasQuality: Bool
    /// Whether the credential was valid but its nonce too old. The request can be retried without asking for a
    /// credential.
    public let isStale: Bool
    /// Whether the server accepts user names and passwords in UTF-8 (`charset=UTF-8`).
    public let isUTF8: Bool
    /// Whether the server accepts a digest in place of the user name (`userhash`).
    public let hashesUser: Bool
    /// Whether the challenge contains `algorithm`. A server of RFC 2617 may not know the parameter; such a server omits
    /// it.
    private let namesAlgorithm: Bool

    /// Creates the client side of a challenge.
    ///
    /// - Returns: `nil` if the challenge is of another scheme or is unsupported. It is unsupported if it has no realm
    ///   or nonce, if a control character occurs in its realm, nonce or opaque value, if its algorithm is unknown, if
    ///   its `qop` lacks `auth` (`auth-int` only), or if it has a session algorithm but no `qop`, because the server
    ///   would not receive the client nonce.
    public init?(_ offer: AuthenticationOffer) {
        guard offer.scheme == "digest", let realm = offer.parameters["realm"], let nonce = offer.parameters["nonce"],
            ![realm, nonce, offer.parameters["opaque"] ?? ""].contains(where: \.containsControlCharacter)
        else { return nil }
        let name = offer.parameters["algorithm"]
        guard
            let algorithm = name.map({ name in
                Algorithm.allCases.first { $0.rawValue.lowercased() == name.lowercased() }
            }) ?? .md5
        else { return nil }
        let qualities = (offer.parameters["qop"] ?? "").lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
        guard qualities.isEmpty || qualities.contains("auth"), !(algorithm.isSession && qualities.isEmpty) else {
            return nil
        }
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        opaque = offer.parameters["opaque"]
        hasQuality = !qualities.isEmpty
        isStale = offer.parameters["stale"]?.lowercased() == "true"
        isUTF8 = offer.parameters["charset"]?.lowercased() == "utf-8"
        hashesUser = offer.parameters["userhash"]?.lowercased() == "true"
        namesAlgorithm = name != nil
    }

    /// Returns the strongest supported challenge (RFC 7616, section 3.7): SHA-256 before MD5, then `qop=auth` before
    /// none, then the first.
    public static func best(of offers: [AuthenticationOffer]) -> DigestAuthorization? {
        var best: DigestAuthorization?
        for offer in offers.compactMap(DigestAuthorization.init) where offer.strength > best?.strength ?? -1 {
            best = offer
        }
        return best
    }

    private var strength: Int { (algorithm.isStrong ? 2 : 0) + (hasQuality ? 1 : 0) }

    /// Returns the value of an `Authorization` or `Proxy-Authorization` field (RFC 7616, section 3.4).
    ///
    /// User name and password are hashed as UTF-8 without normalisation. Section 3.3 requires Normalization Form C; the
    /// code that reads the credential is responsible for it.
    ///
    /// - Parameters:
    ///   - credential: The user name and password. A token cannot be used.
    ///   - method: The request's method, as sent.
    ///   - target: The request's path and query, as sent.
    ///   - nonceCount: The number of requests made with this nonce, including this one; at least 1.
    ///   - clientNonce: A random text. A session algorithm requires the same one for all requests with this nonce.
    /// - Returns: `nil` if the user name contains a control character, or if the target or the client nonce is empty or
    ///   contains a control character or a space.
    public func fieldValue(
        for credential: Credential, method: HTTPRequest.Method, target: String, nonceCount: UInt32, clientNonce: String
    ) -> String? {
        guard !credential.user.containsControlCharacter, Self.isWord(target), Self.isWord(clientNonce) else {
            return nil
        }
        let count = Self.eightDigits(nonceCount)
        var secret = algorithm.hash("\(credential.user):\(realm):\(credential.password)")
        if algorithm.isSession { secret = algorithm.hash("\(secret):\(nonce):\(clientNonce)") }
        let request = algorithm.hash("\(method.rawValue):\(target)")
        let response = algorithm.hash(
            hasQuality
                ? "\(secret):\(nonce):\(count):\(clientNonce):auth:\(request)" : "\(secret):\(nonce):\(request)")

        var fields = [user(credential.user), "realm=\(Self.quoted(realm))", "uri=\(Self.quoted(target))"]
        if namesAlgorithm { fields.append("algorithm=\(algorithm.rawValue)") }
        fields.append("nonce=\(Self.quoted(nonce))")
        if hasQuality { fields += ["nc=\(count)", "cnonce=\(Self.quoted(clientNonce))", "qop=auth"] }
        fields.append("response=\"\(response)\"")
        if let opaque { fields.append("opaque=\(Self.quoted(opaque))") }
        if hashesUser { fields.append("userhash=true") }
        return "Digest " + fields.joined(separator: ", ")
    }

    private func user(_ name: String) -> String {
        if hashesUser { return "username=\"\(algorithm.hash("\(name):\(realm)"))\"" }
        // Only a server that sends `charset` is recent enough to support the extended form (RFC 8187).
        guard isUTF8, !name.utf8.allSatisfy({ $0 < 0x80 }) else { return "username=\(Self.quoted(name))" }
        return "username*=UTF-8''" + PercentEscape.unreserved.escape(name)
    }

    private static func isWord(_ text: String) -> Bool {
        !text.isEmpty && !text.containsControlCharacter && !text.utf8.contains(0x20)
    }

    /// Returns a quoted-string (RFC 9110, section 5.6.4).
    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func eightDigits(_ number: UInt32) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}
