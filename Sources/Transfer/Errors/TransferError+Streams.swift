extension TransferError.Code {
    /// An operation on a side of a stream that is closed, or that belongs to a reader or writer by now.
    public static let streamClosed = Self(rawValue: "stream-closed")
    /// A refused start of TLS. The stream is unchanged.
    public static let secureRefused = Self(rawValue: "tls-refused")
}

extension TransferError {
    static func streamClosed(_ words: String) -> TransferError { TransferError(.streamClosed, words) }

    static let connectionEnded = streamClosed("the connection has ended")

    /// An error for plain text received before TLS. Anyone on the path could have injected those bytes. Read
    /// afterwards, they would count as received under TLS (the class of CVE-2021-22947).
    static let unreadPlaintext = TransferError(
        .secureRefused, "TLS was not started: the peer has sent plain text that has not been read")
}
