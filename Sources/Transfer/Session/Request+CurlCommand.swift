import HTTPTypes

extension Request {
    /// Returns the request as a command line for curl(1) in a POSIX shell, to repeat it by hand.
    ///
    /// The command sends what the request sends: the method, all header fields with those of the session, cookies, the
    /// body, and the credential. It uses the same proxy and version of HTTP. Before the first attempt, changes by
    /// adapters are missing. A body that is a file is sent from its path. A stream, a form with large files, and bytes
    /// in memory beyond 64 KiB are not part of the command: it reads standard input, and a comment says so. A
    /// comment also tells if a line of ``SessionConfiguration/additionalHeaders`` is left out because it is no header
    /// field.
    ///
    /// A form of text and bytes is the same before and after the attempts. A form with files or streams is part of the
    /// command when it has been encoded. Of a form that a closure makes when the request starts, a comment says that it
    /// is not encoded yet.
    ///
    /// - Parameter includingSecrets: whether the command contains passwords, tokens, cookies, the values of the query
    ///   and the body. Without them, each is replaced by `…`, so that the text is fit for a log.
    public func cURLDescription(includingSecrets: Bool = false) -> String {
        guard let request else { return description }
        guard !(self is StreamRequest) else { return description }
        let form = (self as? UploadRequest)?.form?.description(limit: CurlCommandLine.longestBody)
        var shown = request
        // The attempt sets the field when it has encoded the form.
        if task == nil, let type = form?.contentType { shown.headerFields[.contentType] = type }
        return CurlCommandLine(
            request: shown, configuration: session.configuration, body: form.map { .form($0) } ?? .body(curlBody),
            engineFields: curlFields(request), credential: delegate.credential, includesSecrets: includingSecrets
        ).text
    }

    private var curlBody: RequestBody {
        (self as? DataRequest)?.makeBody() ?? (self as? DownloadRequest)?.body ?? .none
    }

    /// Returns `request` as a command line for curl(1), without secrets and without the body; for a stream, which curl
    /// cannot repeat, its address.
    func curlCommand(for request: TransferRequest) -> String {
        guard !(self is StreamRequest) else { return URLRedaction.redact(request.url) }
        return CurlCommandLine(
            request: request, configuration: session.configuration, body: .omitted(isUpload: self is UploadRequest),
            engineFields: curlFields(request), credential: delegate.credential, includesSecrets: false
        ).text
    }

    private func curlFields(_ request: TransferRequest) -> [String] {
        guard self is DownloadRequest else { return [] }
        return DownloadRun.engineFields(for: request)
    }
}
