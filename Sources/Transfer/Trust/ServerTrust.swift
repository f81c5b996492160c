/// What a server showed in its TLS handshake.
public struct ServerTrust: Sendable, Equatable {
    /// The name or address that was asked for.
    public var host: String
    /// PEM, the server's own certificate first.
    public var certificates: [String]
    /// Whether it is what the policy for the host, or the default evaluation, would trust; of a policy of one's own: the
    /// chain alone, without the host's name.
    public var isChainValid: Bool
}
