extension TransferError {
    /// Creates the error for a URL that libcurl cannot read. The message contains the URL without secrets.
    ///
    /// - Parameter name: the subject of the message.
    static func unreadable(_ url: String, name: String = "the URL") -> TransferError {
        guard !url.isEmpty else { return TransferError(.invalidRequest, "\(name) is empty") }
        return TransferError(.invalidRequest, "\(name) cannot be read: \(URLRedaction.excerpt(ofInvalid: url))")
    }
}
