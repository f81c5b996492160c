extension SessionManager {
    /// Bytes of a form, headers and boundaries included, up to which it is put together in memory.
    public static let multipartFormDataEncodingMemoryThreshold = MultipartFormData.defaultThreshold

    /// Sends a form, by the method that `request` names; a URL alone is sent to by `POST`.
    ///
    /// The form is encoded when the request starts, on a thread of its own: in memory where it is small, otherwise into
    /// a temporary file that is removed when the request is complete, however it ends. What stands in the way of
    /// encoding arrives through the request's handlers. `Content-Type` is set with the boundary.
    ///
    /// - Parameters:
    ///   - form: what to send; its first error, where there is one, fails the request.
    ///   - threshold: bytes of the whole body, headers and boundaries included, that are kept in memory at most.
    ///   - temporaryDirectory: for what is larger; absent: `TMPDIR`, or `/var/tmp`, since `/tmp` may be memory
    ///     (file-hierarchy(7)).
    ///   - request: where to, and by which method.
    ///   - progress: counts the bytes of the whole body.
    public func upload(
        multipartFormData form: MultipartFormData,
        threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        temporaryDirectory: String? = nil, with request: some RequestConvertible,
        progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(
            FormBody(threshold: threshold, temporaryDirectory: temporaryDirectory) { form }, request, progress)
    }

    /// Sends a form that `fill` puts together; see ``upload(multipartFormData:threshold:temporaryDirectory:with:progress:)``.
    ///
    /// - Parameters:
    ///   - threshold: bytes of the whole body that are kept in memory at most.
    ///   - temporaryDirectory: for what is larger; absent: `TMPDIR`, or `/var/tmp`.
    ///   - request: where to, and by which method.
    ///   - progress: counts the bytes of the whole body.
    ///   - fill: called once, when the request starts and on a thread where it may block.
    public func upload(
        threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        temporaryDirectory: String? = nil, with request: some RequestConvertible,
        progress: TransferProgress = TransferProgress(),
        multipartFormData fill: @escaping @Sendable (inout MultipartFormData) -> Void
    ) -> UploadRequest {
        let form = FormBody(threshold: threshold, temporaryDirectory: temporaryDirectory) {
            var form = MultipartFormData()
            fill(&form)
            return form
        }
        return upload(form, request, progress)
    }

    private func upload(
        _ form: FormBody, _ request: some RequestConvertible, _ progress: TransferProgress
    ) -> UploadRequest {
        UploadRequest(Self.wish(toSend: request), form: form, progress: progress, manager: self)
    }
}
