/// What a server showed in its TLS handshake.
public struct ServerTrust: Sendable, Equatable {
    /// The name or address that was asked for.
    public var host: String
    /// PEM, the server's own certificate first.
    public var certificates: [String]
    /// Whether the chain leads to a certificate that is trusted, is in date, and was not refused by OpenSSL for another
    /// reason; the host's name is not part of it.
    public var isChainValid: Bool
}
