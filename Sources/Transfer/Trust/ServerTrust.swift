/// The certificates that a server presented in its TLS handshake.
public struct ServerTrust: Sendable, Equatable {
    /// The name or address in the request's URL.
    public var host: String
    /// The chain in PEM, with the server's own certificate first.
    public var certificates: [String]
    /// Whether the policy for the host, or the default evaluation, trusts the server. With a custom evaluation, only
    /// the chain was checked, without the host name.
    public var isChainValid: Bool
    /// The certificates, in DER, among which a pinned one is looked for, the server's own one first. Each was signed by
    /// the next.
    var chain: [[UInt8]] = []
    /// Whether ``SessionConfiguration/hostTrust`` pins the keys of the server.
    var isPinnedByHost = false
}
