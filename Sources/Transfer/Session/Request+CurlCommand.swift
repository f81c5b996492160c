extension Request {
    /// Returns the request as a command line for curl(1) in a POSIX shell, to repeat it by hand.
    ///
    /// The command sends what the request sends: the method, all header fields with those of the session, cookies, the
    /// body, and the credential. It uses the same proxy and version of HTTP. Before the first attempt, changes by
    /// adapters are missing. A body that is a file is sent from its path. A stream, a form with large files, and bytes
    /// in memory beyond 64 KiB are not part of the command: it reads standard input, and a comment says so.
    ///
    /// - Parameter includingSecrets: whether the command contains passwords, tokens, cookies, the values of the query
    ///   and the body. Without them, each is replaced by `…`, so that the text is fit for a log.
    public func cURLDescription(includingSecrets: Bool = false) -> String {
        guard let request else { return description }
        guard !(self is StreamRequest) else { return description }
        return CurlCommandLine(
            request: request, configuration: session.configuration, body: curlBody, engineFields: curlFields(request),
            credential: delegate.credential, includesSecrets: includingSecrets
        ).text
    }

    /// The body; `nil` if it is not known: the form of an upload that does not run.
    private var curlBody: RequestBody? {
        guard let request = self as? DataRequest else { return (self as? DownloadRequest)?.body ?? RequestBody.none }
        let body = request.makeBody()
        if case .none = body, let upload = request as? UploadRequest, upload.hasForm { return nil }
        return body
    }

    private func curlFields(_ request: TransferRequest) -> [String] {
        guard self is DownloadRequest else { return [] }
        return DownloadRun.engineFields(for: request)
    }
}
