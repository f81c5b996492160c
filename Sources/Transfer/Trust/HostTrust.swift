/// The criteria by which the servers of a host are trusted, besides the default evaluation.
public struct HostTrust: Sendable, Equatable {
    /// The trusted certificates in place of the session's, as PEM text; `nil` for the session's. A request's own
    /// ``TransferRequest/caCertificates`` take precedence.
    public var caCertificates: String?
    /// The pinned keys: one of them must be the key of a certificate in the server's chain. They apply to every request.
    /// For FTPS only the server's own key counts. An empty list pins none.
    public var pins: [PublicKeyPin]

    /// Creates criteria.
    public init(caCertificates: String? = nil, pins: [PublicKeyPin] = []) {
        self.caCertificates = caCertificates
        self.pins = pins
    }
}
