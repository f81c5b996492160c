public import FoundationEssentials
public import HTTPTypes

/// Uploads of files and forms to a URL, with the method and the header fields beside it.
extension SessionManager {
    // MARK: Files

    /// Returns a request to send a file.
    ///
    ///     let response = try await manager.upload(fileAt: "/srv/photo.jpg", to: url, method: .put).validate().value
    ///
    /// The file is opened at once and sent in its present state; a change before its last byte was read fails the
    /// request with ``TransferError/Code/sourceChanged``. If it cannot be opened or is not a regular file, the request
    /// fails too, and its error names the path.
    ///
    /// - Parameters:
    ///   - path: the file's path, absolute or relative to the process's directory.
    ///   - url: an absolute URL.
    ///   - method: the method, by default `POST`.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - progress: counts the bytes of the file.
    public func upload(
        fileAt path: String, to url: some URLConvertible, method: HTTPRequest.Method = .post,
        headers: HTTPHeaders = [:], progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(
            Result { () throws(TransferError) in .file(try UploadSource(path: path)) },
            Self.intention(url, method, headers), progress)
    }

    /// Returns a request to send the file at a URL; see ``upload(fileAt:to:method:headers:progress:)``.
    ///
    /// - Parameters:
    ///   - file: a URL of the scheme `file`. Any other fails the request with ``TransferError/Code/invalidRequest``.
    ///   - url: an absolute URL.
    ///   - method: the method, by default `POST`.
    ///   - headers: fields of this request, which take precedence over the session's.
    ///   - progress: counts the bytes of the file.
    public func upload(
        _ file: URL, to url: some URLConvertible, method: HTTPRequest.Method = .post, headers: HTTPHeaders = [:],
        progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(
            Result { () throws(TransferError) in .file(try UploadSource(file)) },
            Self.intention(url, method, headers), progress)
    }

    /// Returns a request to send a file as the body of `request`; see
    /// ``upload(fileAt:to:method:headers:progress:)``.
    ///
    /// - Parameters:
    ///   - path: the file's path, absolute or relative to the process's directory.
    ///   - request: the URL or request to send to; a URL alone is sent to with `POST`.
    ///   - progress: counts the bytes of the file.
    ///   - modifier: changes the request before it is sent.
    public func upload(
        fileAt path: String, with request: some RequestConvertible, progress: TransferProgress = TransferProgress(),
        modifier: RequestModifier? = nil
    ) -> UploadRequest {
        upload(
            Result { () throws(TransferError) in .file(try UploadSource(path: path)) },
            RequestIntention.make(sending: request, modifier), progress)
    }

    /// Returns a request to send the file at a URL as the body of `request`; see
    /// ``upload(fileAt:to:method:headers:progress:)``.
    ///
    /// - Parameters:
    ///   - file: a URL of the scheme `file`. Any other fails the request with ``TransferError/Code/invalidRequest``.
    ///   - request: the URL or request to send to; a URL alone is sent to with `POST`.
    ///   - progress: counts the bytes of the file.
    ///   - modifier: changes the request before it is sent.
    public func upload(
        _ file: URL, with request: some RequestConvertible, progress: TransferProgress = TransferProgress(),
        modifier: RequestModifier? = nil
    ) -> UploadRequest {
        upload(
            Result { () throws(TransferError) in .file(try UploadSource(file)) },
            RequestIntention.make(sending: request, modifier), progress)
    }

    // MARK: Forms

    /// Returns a request to send a form; see
    /// ``upload(multipartFormData:threshold:temporaryDirectory:with:progress:modifier:)``.
    ///
    /// - Parameters:
    ///   - form: the form to send; its first error, if there is one, fails the request.
    ///   - url: an absolute URL.
    ///   - threshold: the maximum size of the whole body that is kept in memory, in bytes.
    ///   - method: the method, by default `POST`.
    ///   - headers: fields of this request, which take precedence over the session's. `Content-Type` is that of the
    ///     form.
    ///   - progress: counts the bytes of the whole body.
    public func upload(
        multipartFormData form: MultipartFormData, to url: some URLConvertible,
        usingThreshold threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        method: HTTPRequest.Method = .post, headers: HTTPHeaders = [:],
        progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        let form = FormBody(form, threshold: threshold, temporaryDirectory: nil)
        return UploadRequest(Self.intention(url, method, headers), form: form, progress: progress, manager: self)
    }

    /// Returns a request to send a form that `fill` creates.
    ///
    ///     let upload = manager.upload(multipartFormData: { $0.append("a title", name: "title") }, to: url)
    ///
    /// - Parameters:
    ///   - fill: called once, when the request starts, on a thread where it may block.
    ///   - url: an absolute URL.
    ///   - threshold: the maximum size of the whole body that is kept in memory, in bytes.
    ///   - method: the method, by default `POST`.
    ///   - headers: fields of this request, which take precedence over the session's. `Content-Type` is that of the
    ///     form.
    ///   - progress: counts the bytes of the whole body.
    public func upload(
        multipartFormData fill: @escaping @Sendable (inout MultipartFormData) -> Void, to url: some URLConvertible,
        usingThreshold threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        method: HTTPRequest.Method = .post, headers: HTTPHeaders = [:],
        progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(fill, threshold, Self.intention(url, method, headers), progress)
    }

    /// Returns a request to send a form that `fill` creates, with the method of `request`; a URL alone is sent to with
    /// `POST`.
    ///
    /// - Parameters:
    ///   - fill: called once, when the request starts, on a thread where it may block.
    ///   - request: the URL and method of the request.
    ///   - threshold: the maximum size of the whole body that is kept in memory, in bytes.
    ///   - progress: counts the bytes of the whole body.
    ///   - modifier: changes the request before it is sent.
    public func upload(
        multipartFormData fill: @escaping @Sendable (inout MultipartFormData) -> Void,
        with request: some RequestConvertible,
        usingThreshold threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        progress: TransferProgress = TransferProgress(), modifier: RequestModifier? = nil
    ) -> UploadRequest {
        upload(fill, threshold, RequestIntention.make(sending: request, modifier), progress)
    }

    private func upload(
        _ fill: @escaping @Sendable (inout MultipartFormData) -> Void, _ threshold: Int64,
        _ intention: Result<TransferRequest, TransferError>, _ progress: TransferProgress
    ) -> UploadRequest {
        let form = FormBody(threshold: threshold, temporaryDirectory: nil) {
            var form = MultipartFormData()
            fill(&form)
            return form
        }
        return UploadRequest(intention, form: form, progress: progress, manager: self)
    }

    // MARK: Requests

    private static func intention(
        _ url: some URLConvertible, _ method: HTTPRequest.Method, _ headers: HTTPHeaders
    ) -> Result<TransferRequest, TransferError> {
        Result { () throws(TransferError) in
            TransferRequest(url: try url.asURLText(), method: method, headerFields: try HTTPFields(headers))
        }
    }

    /// Returns a request to send a body, which fails with the error of the request or of the body.
    private func upload(
        _ body: Result<RequestBody, TransferError>, _ intention: Result<TransferRequest, TransferError>,
        _ progress: TransferProgress
    ) -> UploadRequest {
        switch body {
        case .success(let body): UploadRequest(intention, body: body, progress: progress, manager: self)
        case .failure(let error):
            UploadRequest(
                intention.flatMap { _ in .failure(error) }, body: .none, progress: progress, manager: self)
        }
    }
}
