/// A delegate's reply to a question.
enum Decision: Sendable {
    /// The next request; `nil` makes the redirect response the final one.
    case redirect(TransferRequest?)
    case challenge(ChallengeDisposition, Credential?)
    case response(ResponseDisposition)
    /// The response to store; `nil` stores nothing.
    case cache(CachedResponse?)
}
