import HTTPTypes

/// An authentication challenge from a server or a proxy (RFC 9110, section 11.3).
public struct AuthenticationOffer: Sendable, Equatable {
    /// The maximum size of all field lines together, in bytes. The line that exceeds it and all later lines are
    /// ignored.
    public static let maximumInputSize = 64 * 1024
    /// The maximum number of challenges in a response. Later ones are ignored.
    public static let maximumOffers = 32
    /// The maximum number of parameters in a challenge. Later ones are ignored.
    public static let maximumParameters = 64

    /// The scheme in lower case, such as `basic`. Schemes are case-insensitive (RFC 9110, section 11.1).
    public let scheme: String
    /// The parameter values by lower-case name, without quotation marks and escapes. If a name occurs twice, which
    /// section 11.2 forbids, the first value is used.
    public internal(set) var parameters: [String: String]
    /// The token68 value that replaces the parameters, as in `Negotiate YII=` (RFC 9110, section 11.2).
    public internal(set) var token68: String?

    init(scheme: String, parameters: [String: String] = [:], token68: String? = nil) {
        self.scheme = scheme
        self.parameters = parameters
        self.token68 = token68
    }

    /// Parses the values of all `WWW-Authenticate` or `Proxy-Authenticate` lines of a response, in order. The lines
    /// form a single list (RFC 9110, sections 5.2 and 11.6.1).
    ///
    /// Invalid members are ignored. Parameters of an invalid challenge are not attributed to another challenge.
    public static func parse(_ lines: some Sequence<String>) -> [AuthenticationOffer] {
        var parser = AuthenticationOfferParser()
        var size = 0
        for line in lines {
            size += line.utf8.count
            guard size <= maximumInputSize else { break }
            parser.add(line)
        }
        return parser.offers
    }

    /// Parses the value of a single field line.
    public static func parse(_ line: String) -> [AuthenticationOffer] { parse(CollectionOfOne(line)) }
}

extension ResponseHead {
    /// The challenges in the `WWW-Authenticate` fields, which accompany a status of 401.
    public var authenticationOffers: [AuthenticationOffer] {
        AuthenticationOffer.parse(headerFields[values: .wwwAuthenticate])
    }

    /// The challenges in the `Proxy-Authenticate` fields, which accompany a status of 407.
    public var proxyAuthenticationOffers: [AuthenticationOffer] {
        AuthenticationOffer.parse(headerFields[values: .proxyAuthenticate])
    }
}
