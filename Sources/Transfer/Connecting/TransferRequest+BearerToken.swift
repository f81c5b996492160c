import HTTPTypes

extension TransferRequest {
    /// Returns whether the request is sent with a bearer token (RFC 6750, section 2.1): its own, or one among the
    /// session's header fields.
    func sendsBearerToken(_ configuration: SessionConfiguration) -> Bool {
        let lines = SentFields.lines(of: self, configuration, engineFields: [], isAuthorized: false)
        return SentFields.fields(lines)[.authorization]?.lowercased().hasPrefix("bearer ") ?? false
    }
}
