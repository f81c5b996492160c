/// All requests and tasks of a manager.
extension SessionManager {
    /// The requests that have started and are not complete, in the order of their creation. A request that waits for
    /// its next attempt is one of them.
    public var allRequests: [Request] { session.contents.requests.sorted { $0.id < $1.id } }

    /// The tasks that have started and are not complete, in the order of their creation, with those that the session
    /// itself created. A request has a task during an attempt.
    public var allTasks: [any SessionTask] { session.contents.tasks.sorted { $0.identifier < $1.identifier } }

    /// Passes on the requests that have started and are not complete.
    ///
    /// - Parameters:
    ///   - queue: the context in which `body` runs.
    ///   - body: receives the requests in the order of their creation.
    public func withAllRequests(
        queue: HandlerQueue = .shared, perform body: @escaping @Sendable ([Request]) -> Void
    ) {
        let requests = allRequests
        queue.run { body(requests) }
    }

    /// Cancels all requests that have started and are not complete. Each fails with ``TransferError/Code/cancelled``.
    /// The manager accepts further requests.
    ///
    /// - Parameters:
    ///   - queue: the context in which `completion` runs.
    ///   - completion: runs once, when the requests are complete and their handlers have been called.
    public func cancelAllRequests(
        queue: HandlerQueue = .shared, then completion: (@Sendable () -> Void)? = nil
    ) {
        let requests = allRequests
        for request in requests { request.cancel() }
        guard let completion else { return }
        Task {
            for request in requests { await request.ending() }
            queue.run(completion)
        }
    }

    /// Cancels all requests that have started and are not complete, and waits until their handlers have been called.
    /// Each fails with ``TransferError/Code/cancelled``. The manager accepts further requests.
    public func cancelAllRequests() async {
        let requests = allRequests
        for request in requests { request.cancel() }
        for request in requests { await request.ending() }
    }
}

extension Request {
    /// Waits until the request is complete and the handlers that it had have been called.
    fileprivate func ending() async {
        await withCheckedContinuation { continuation in
            delegate.queue.add(on: .inline) { continuation.resume() }
        }
    }
}
