import HTTPTypes

/// A request that sends a body and receives a response.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class UploadRequest: DataRequest, @unchecked Sendable {
    private let form: FormBody?
    let remains: UploadRemains

    init(
        _ intention: Result<TransferRequest, TransferError>, body: RequestBody, progress: TransferProgress,
        manager: SessionManager
    ) {
        form = nil
        remains = UploadRemains(name: (try? intention.get())?.uploadName)
        super.init(
            intention, body: { body }, delegate: UploadTaskDelegate(progress: progress), progress: progress,
            manager: manager, isUpload: true)
    }

    init(
        _ intention: Result<TransferRequest, TransferError>, form: FormBody, progress: TransferProgress,
        manager: SessionManager
    ) {
        self.form = form
        remains = UploadRemains(name: (try? intention.get())?.uploadName)
        super.init(
            intention, body: { form.body }, delegate: UploadTaskDelegate(progress: progress), progress: progress,
            manager: manager, isUpload: true)
    }

    /// The progress of the sent body.
    public var uploadProgress: TransferProgress { progress }

    /// The encoded body of a form; `nil` before the encoding and if it failed. A file is removed when the request is
    /// complete.
    public var multipartEncoding: MultipartFormDataEncodingResult? { form?.result }

    override func prepare(
        _ request: TransferRequest, then: @escaping @Sendable (Result<TransferRequest, TransferError>) -> Void
    ) {
        guard let form else { return then(.success(request)) }
        form.prepare { type in
            then(
                type.map { type in
                    var request = request
                    request.headerFields[.contentType] = type
                    return request
                })
        }
    }

    override func cleanUp() {
        form?.finish()
        if remains.isLeft, let task { session.remove(remains, of: task) }
    }
}
