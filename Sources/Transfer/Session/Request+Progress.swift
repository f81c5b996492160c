extension Request {
    /// Runs `handler` whenever the counts have changed, at most every 50 ms, and once more with the final counts before
    /// any other handler runs. Calls do not overlap.
    ///
    /// - Parameters:
    ///   - queue: the context of the handler; `nil` for the manager's.
    ///   - handler: a closure that takes the counts of ``Request/progress``. It should return soon, since the request's
    ///     other handlers wait for its last call.
    @discardableResult
    public func onProgress(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (TransferProgress.Snapshot) -> Void
    ) -> Self {
        ProgressHandler(progress, on: queue ?? callbackQueue, handler).start(before: delegate)
        return self
    }
}

extension UploadRequest {
    /// Runs `handler` as ``Request/onProgress(queue:_:)`` does, with the counts of ``UploadRequest/uploadProgress``.
    @discardableResult
    public func onUploadProgress(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (TransferProgress.Snapshot) -> Void
    ) -> Self {
        ProgressHandler(uploadProgress, on: queue ?? callbackQueue, handler).start(before: delegate)
        return self
    }
}

// The names of Alamofire.
extension ValidatedRequest {
    /// Equivalent of ``Request/onProgress(queue:_:)``: the progress of the response body.
    @discardableResult
    public func downloadProgress(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (TransferProgress.Snapshot) -> Void
    ) -> Self {
        onProgress(queue: queue, handler)
    }
}

extension UploadRequest {
    /// Equivalent of ``UploadRequest/onUploadProgress(queue:_:)``.
    @discardableResult
    public func uploadProgress(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (TransferProgress.Snapshot) -> Void
    ) -> Self {
        onUploadProgress(queue: queue, handler)
    }
}
