/// A file to send.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class UploadRequest: Request, @unchecked Sendable {
    public let source: UploadSource

    init(_ original: TransferRequest, source: UploadSource, progress: TransferProgress, manager: SessionManager) {
        self.source = source
        super.init(original, delegate: UploadTaskDelegate(), progress: progress, manager: manager) {
            [session = manager.session] request in
            session.uploadTask(with: request, from: source, progress: progress)
        }
    }

    /// How an upload request ended.
    public struct Response: Sendable {
        public var head: ResponseHead?
        public var error: TransferError?
    }

    /// Runs `handler` when the request is complete, on the thread that completed it.
    @discardableResult
    public func response(_ handler: @escaping @Sendable (Response) -> Void) -> Self {
        delegate.whenComplete { [self] in handler(Response(head: response, error: delegate.error)) }
        return self
    }

    /// The head of the server's answer.
    ///
    /// - Throws: why the upload failed.
    public var value: ResponseHead? {
        get async throws(TransferError) {
            let outcome = await withCheckedContinuation { continuation in
                response { continuation.resume(returning: $0) }
            }
            if let error = outcome.error { throw error }
            return outcome.head
        }
    }
}
