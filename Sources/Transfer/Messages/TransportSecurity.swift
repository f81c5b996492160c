/// The use of TLS with an `ftp://` server (RFC 4217): on its control connection before the login, and on every data
/// connection. For `ftps://` it is always ``required``.
public enum TransportSecurity: String, Sendable, Equatable, Codable {
    /// User names, passwords and files are sent unencrypted.
    case none
    /// TLS is used if the server offers it. An attacker on the network can suppress the offer.
    case `try`
    /// TLS is required; otherwise the transfer fails.
    case required
}
