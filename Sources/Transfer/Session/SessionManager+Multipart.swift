extension SessionManager {
    /// The form size in bytes, headers and boundaries included, up to which a form is encoded in memory.
    public static let multipartFormDataEncodingMemoryThreshold = MultipartFormData.defaultThreshold

    /// Sends a form, with the method of `request`; a URL alone is sent to with `POST`.
    ///
    /// The form is encoded when the request starts, on a separate thread: a small form in memory, a larger one in a
    /// temporary file that is removed when the request is complete, however it ends. Errors of the encoding arrive at
    /// the request's handlers. `Content-Type` is set with the boundary.
    ///
    /// - Parameters:
    ///   - form: the form to send; its first error, if there is one, fails the request.
    ///   - threshold: the maximum size of the whole body, headers and boundaries included, that is kept in memory, in
    ///     bytes.
    ///   - temporaryDirectory: the directory for larger bodies; by default `TMPDIR`, or `/var/tmp`, since `/tmp` may be
    ///     in memory (file-hierarchy(7)).
    ///   - request: the URL and method of the request.
    ///   - progress: counts the bytes of the whole body.
    ///   - modifier: changes the request before it is sent.
    public func upload(
        multipartFormData form: MultipartFormData,
        threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        temporaryDirectory: String? = nil, with request: some RequestConvertible,
        progress: TransferProgress = TransferProgress(), modifier: RequestModifier? = nil
    ) -> UploadRequest {
        let form = FormBody(form, threshold: threshold, temporaryDirectory: temporaryDirectory)
        return upload(form, request, progress, modifier)
    }

    /// Sends a form that `fill` creates; see
    /// ``upload(multipartFormData:threshold:temporaryDirectory:with:progress:modifier:)``.
    ///
    /// - Parameters:
    ///   - threshold: the maximum size of the whole body that is kept in memory, in bytes.
    ///   - temporaryDirectory: the directory for larger bodies; by default `TMPDIR`, or `/var/tmp`.
    ///   - request: the URL and method of the request.
    ///   - progress: counts the bytes of the whole body.
    ///   - modifier: changes the request before it is sent.
    ///   - fill: called once, when the request starts, on a thread where it may block.
    public func upload(
        threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        temporaryDirectory: String? = nil, with request: some RequestConvertible,
        progress: TransferProgress = TransferProgress(), modifier: RequestModifier? = nil,
        multipartFormData fill: @escaping @Sendable (inout MultipartFormData) -> Void
    ) -> UploadRequest {
        let form = FormBody(threshold: threshold, temporaryDirectory: temporaryDirectory) {
            var form = MultipartFormData()
            fill(&form)
            return form
        }
        return upload(form, request, progress, modifier)
    }

    private func upload(
        _ form: FormBody, _ request: some RequestConvertible, _ progress: TransferProgress,
        _ modifier: RequestModifier?
    ) -> UploadRequest {
        UploadRequest(RequestIntention.make(sending: request, modifier), form: form, progress: progress, manager: self)
    }
}
