extension DownloadRequest {
    /// Ends the request, and hands over what another can go on with.
    ///
    /// - Parameters:
    ///   - queue: where `completion` runs.
    ///   - completion: runs when the request is complete; with `nil` where nothing came, or where it came to its end
    ///     all the same.
    public func cancel(
        queue: HandlerQueue = .shared, byProducingResumeData completion: @escaping @Sendable (ResumeData?) -> Void
    ) {
        cancel()
        response(queue: queue) { completion($0.resumeData) }
    }

    /// Ends the request.
    ///
    /// - Returns: what another can go on with; `nil` where nothing came, or where it came to its end all the same.
    public func cancelProducingResumeData() async -> ResumeData? {
        cancel()
        return await outcome.resumeData
    }
}
