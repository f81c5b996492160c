extension DownloadRequest {
    /// Cancels the request, and passes on data with which another request can resume it.
    ///
    /// - Parameters:
    ///   - queue: the context in which `completion` runs.
    ///   - completion: runs when the request is complete. Its argument is `nil` if no byte was received, or if the
    ///     request completed anyway.
    public func cancel(
        queue: HandlerQueue? = nil, byProducingResumeData completion: @escaping @Sendable (ResumeData?) -> Void
    ) {
        cancel()
        response(queue: queue) { completion($0.resumeData) }
    }

    /// Cancels the request.
    ///
    /// - Returns: data with which another request can resume it; `nil` if no byte was received, or if the request
    ///   completed anyway.
    public func cancelProducingResumeData() async -> ResumeData? {
        cancel()
        return await outcome.resumeData
    }
}
