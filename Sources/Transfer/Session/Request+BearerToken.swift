import HTTPMessages

extension Request {
    /// Returns whether the request was sent with a bearer token, if the server requires authentication (401).
    func sentToken(_ request: TransferRequest, _ head: ResponseHead) -> Bool {
        guard head.status == 401 else { return false }
        if request.sendsBearerToken(session.configuration) { return true }
        // A token that was set for challenges was the answer to this one, unless the server is another than intended.
        guard let credential = delegate.credential, case .bearer = credential.kind else { return false }
        return !request.hasLeftOrigin && !head.authenticationOffers.isEmpty
    }
}
