/// A client's decision about the head of the final response.
enum HeadDisposition {
    /// The body is received.
    case receive
    /// The body is not needed; the client is notified of its end as usual.
    case discard
    /// A delegate decides about the response.
    case ask
    /// The exchange is aborted.
    case refuse(TransferError)
}
