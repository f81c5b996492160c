import Crypto
import HTTPTypes

/// The client's side of the Digest scheme (RFC 7616, and RFC 2617 before it), for one offer of a server.
///
/// Nothing here is random and nothing is counted: the caller brings the client's nonce and the count, so that one
/// offer serves many requests until its nonce goes stale.
public struct DigestAuthorization: Sendable, Equatable {
    /// How strong the answer is and what goes into its key. SHA-512-256, which RFC 7616 leaves optional, is not known.
    public enum Algorithm: String, Sendable, CaseIterable {
        /// MD5, as servers of RFC 2617 know it; weak, and still the most common.
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

        /// Lower-case hexadecimal.
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

    /// As the server sent it, which the digests cover.
    public let realm: String
    /// The server's, as it was sent.
    public let nonce: String
    /// To be sent back as it came.
    public let opaque: String?
    /// That of the offer; without a word of it ``Algorithm/md5`` (RFC 7616, section 3.3).
    public let algorithm: Algorithm
    /// Whether the answer covers the client's nonce and the count (`qop=auth`); without it the scheme is that of
    /// RFC 2069.
    public let hasQuality: Bool
    /// The credential was right, its nonce too old: the request may be made again without asking anyone.
    public let isStale: Bool
    /// Whether the server says that it takes names and passwords as UTF-8.
    public let isUTF8: Bool
    /// Whether the server takes a digest in the place of the user's name.
    public let hashesUser: Bool
    /// A server of RFC 2617 may not know the parameter, and says so by leaving it out.
    private let namesAlgorithm: Bool

    /// - Returns: `nil` where the offer is of another scheme or cannot be answered: no realm or nonce, an unknown
    ///   algorithm, no `auth` among the qualities of protection (`auth-int` alone), or a session's key without any,
    ///   for which the server would lack the client's nonce.
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

    /// The strongest of the offers that can be answered (RFC 7616, section 3.7): SHA-256 before MD5, then one with
    /// `auth` before one without, then the first.
    public static func best(of offers: [AuthenticationOffer]) -> DigestAuthorization? {
        var best: DigestAuthorization?
        for offer in offers.compactMap(DigestAuthorization.init) where offer.strength > best?.strength ?? -1 {
            best = offer
        }
        return best
    }

    private var strength: Int { (algorithm.isStrong ? 2 : 0) + (hasQuality ? 1 : 0) }

    /// The value of an `Authorization` or `Proxy-Authorization` field (RFC 7616, section 3.4).
    ///
    /// Name and password go into the digest as the UTF-8 they are; bringing them into Normalization Form C, which
    /// section 3.3 asks for, is left to whoever read them.
    ///
    /// - Parameters:
    ///   - credential: whose name and password go into it; a token is of no use here.
    ///   - method: the request's, as it is sent.
    ///   - target: the request's path and query, as they are sent.
    ///   - nonceCount: how many requests have been made with this nonce, this one counted: 1 or more.
    ///   - clientNonce: random text; for an algorithm of a session the same for all requests with this nonce.
    /// - Returns: `nil` for a user's name with a control character, and for a target or client's nonce that is empty
    ///   or has one, or a space.
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
        // Only a server that speaks of charsets is new enough to know the extended form (RFC 8187).
        guard isUTF8, !name.utf8.allSatisfy({ $0 < 0x80 }) else { return "username=\(Self.quoted(name))" }
        return "username*=UTF-8''" + PercentEscape.unreserved.escape(name)
    }

    private static func isWord(_ text: String) -> Bool {
        !text.isEmpty && !text.containsControlCharacter && !text.utf8.contains(0x20)
    }

    /// A quoted-string (RFC 9110, section 5.6.4).
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
