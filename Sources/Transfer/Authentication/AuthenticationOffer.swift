import HTTPTypes

/// One way to prove who one is, as a server or a proxy offers it: a challenge (RFC 9110, section 11.3).
public struct AuthenticationOffer: Sendable, Equatable {
    /// Bytes of all field lines together; the line that goes beyond is left out, with those after it.
    public static let maximumInputSize = 64 * 1024
    /// Offers of one answer; those after them are left out.
    public static let maximumOffers = 32
    /// Parameters of one offer; those after them are left out.
    public static let maximumParameters = 64

    /// Lower case, as in `basic` (RFC 9110, section 11.1: compared without case).
    public let scheme: String
    /// Values by lower-case names, without quotation marks and escapes. Of a name that comes twice, which section
    /// 11.2 forbids, the first value counts.
    public internal(set) var parameters: [String: String]
    /// What stands in the parameters' place, as in `Negotiate YII=` (RFC 9110, section 11.2).
    public internal(set) var token68: String?

    init(scheme: String, parameters: [String: String] = [:], token68: String? = nil) {
        self.scheme = scheme
        self.parameters = parameters
        self.token68 = token68
    }

    /// Reads the values of all `WWW-Authenticate` or `Proxy-Authenticate` lines of an answer, in order: they are one
    /// list (RFC 9110, sections 5.2 and 11.6.1).
    ///
    /// What cannot be read is left out, and parameters of an offer that cannot be read go to no other.
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

    /// Reads the value of a single line.
    public static func parse(_ line: String) -> [AuthenticationOffer] { parse(CollectionOfOne(line)) }
}

extension ResponseHead {
    /// What the server offers beside a status of 401.
    public var authenticationOffers: [AuthenticationOffer] {
        AuthenticationOffer.parse(headerFields[values: .wwwAuthenticate])
    }

    /// What the proxy offers beside a status of 407.
    public var proxyAuthenticationOffers: [AuthenticationOffer] {
        AuthenticationOffer.parse(headerFields[values: .proxyAuthenticate])
    }
}
