/// Whether an `ftp://` server is to speak TLS (RFC 4217): on its control connection before anyone logs in, and on
/// every data connection. For `ftps://` it is always ``required``.
public enum TransportSecurity: Sendable, Equatable {
    /// Names, passwords and files go over the network as they are.
    case none
    /// TLS where the server offers it, otherwise none: whoever sits between can take the offer away.
    case `try`
    /// TLS, or no transfer.
    case required
}
