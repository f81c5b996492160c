public import FoundationEssentials

/// The result of the encoding of a form, with the request that sends it.
public enum MultipartFormDataEncodingResult: Sendable {
    /// The form is encoded. A request that streams from disk reads the file at `streamFileURL`, which it removes when
    /// it is complete.
    case success(request: UploadRequest, streamingFromDisk: Bool, streamFileURL: URL?)
    /// The form could not be encoded, or the request could not be created.
    case failure(TransferError)
}

extension SessionManager {
    /// Encodes a form at once, and passes the request that sends it to `encodingCompletion`. The request starts as any
    /// other does.
    ///
    /// - Parameters:
    ///   - fill: creates the form, on a thread where it may block.
    ///   - threshold: the maximum size of the whole body that is kept in memory, in bytes.
    ///   - temporaryDirectory: the directory for larger bodies; by default `TMPDIR`, or `/var/tmp`.
    ///   - request: the URL and method of the request; a URL alone is sent to with `POST`.
    ///   - queue: the context of `encodingCompletion`; `nil` for ``SessionManager/callbackQueue``.
    ///   - encodingCompletion: called once. The manager must be kept until then: after its release, the result is a
    ///     failure with ``TransferError/Code/invalidated``.
    public func upload(
        multipartFormData fill: @escaping @Sendable (inout MultipartFormData) -> Void,
        usingThreshold threshold: Int64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
        temporaryDirectory: String? = nil, with request: some RequestConvertible, queue: HandlerQueue? = nil,
        encodingCompletion: @escaping @Sendable (MultipartFormDataEncodingResult) -> Void
    ) {
        let queue = queue ?? callbackQueue
        let intention = RequestIntention.make(sending: request, nil)
        if case .failure(let error) = intention { return queue.run { encodingCompletion(.failure(error)) } }
        let form = FormBody(threshold: threshold, temporaryDirectory: temporaryDirectory) {
            var form = MultipartFormData()
            fill(&form)
            return form
        }
        form.prepare { [weak self] encoded in
            let result: MultipartFormDataEncodingResult =
                switch encoded {
                case .failure(let error): .failure(error)
                case .success:
                    self?.encodingResult(of: form, intention)
                        ?? .failure(TransferError(.invalidated, "the manager was released before the form was encoded"))
                }
            queue.run { encodingCompletion(result) }
        }
    }

    private func encodingResult(
        of form: FormBody, _ intention: Result<TransferRequest, TransferError>
    ) -> MultipartFormDataEncodingResult {
        let file: URL? = if case .onDisk(let path, _, _) = form.result { URL(filePath: path) } else { nil }
        let request = UploadRequest(intention, form: form, progress: TransferProgress(), manager: self)
        return .success(request: request, streamingFromDisk: file != nil, streamFileURL: file)
    }
}
