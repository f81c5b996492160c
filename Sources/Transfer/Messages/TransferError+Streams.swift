extension TransferError.Code {
    /// That side of a stream is closed, or belongs to somebody else by now.
    public static let streamClosed = Self(rawValue: "stream-closed")
    /// TLS was not started on a stream, which is as it was.
    public static let secureRefused = Self(rawValue: "tls-refused")
}

extension TransferError {
    static func streamClosed(_ words: String) -> TransferError { TransferError(.streamClosed, words) }

    static let connectionEnded = streamClosed("the connection has ended")

    /// Bytes that came before TLS could have been put there by anyone on the way: read afterwards, they would count as
    /// said under TLS (the class of CVE-2021-22947).
    static let unreadPlaintext = TransferError(
        .secureRefused, "TLS was not started: the peer has sent plain text that has not been read")
}
