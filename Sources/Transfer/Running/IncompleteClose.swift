/// A connection under TLS that ended without close_notify, by which anyone on the network can end it: a body that its
/// end alone delimits may lack bytes (RFC 9112, section 9.8).
struct IncompleteClose: Error {}

extension TransferError {
    /// The connection to `host` ended within TLS, and the answer with it.
    static func incompleteClose(host: String) -> TransferError {
        TransferError(
            .truncated,
            "\(host) states no length, and the connection ended without TLS saying that all of the answer came; "
                + "with a checksum that would show", underlying: IncompleteClose())
    }

    /// Whether nothing but the end of a body without a length is in doubt.
    var isIncompleteClose: Bool { underlying is IncompleteClose }
}
