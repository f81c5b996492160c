/// The end of a TLS connection without a close_notify alert. Anyone on the network can cause it, so a body that is
/// delimited by the end of the connection may be truncated (RFC 9112, section 9.8).
struct IncompleteClose: Error {}

extension TransferError {
    /// Returns the error for a response from `host` that ended with an incomplete close.
    static func incompleteClose(host: String) -> TransferError {
        TransferError(
            .truncated,
            "\(host) sent no Content-Length and closed the connection without ending TLS, so the response may be "
                + "incomplete; a checksum would show that", underlying: IncompleteClose())
    }

    /// Whether the error is the incomplete close of a response without a stated length.
    var isIncompleteClose: Bool { underlying is IncompleteClose }
}
