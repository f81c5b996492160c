import Synchronization

/// Receives every callback of a session. A closure set in ``overrides`` takes the place of what happens otherwise;
/// without one, the callback goes on to the request's own ``TaskDelegate``.
public final class SessionDelegate: Sendable {
    /// Closures in the place of the defaults. They run on the session's threads and must not block.
    public struct Overrides: Sendable {
        public var sessionDidBecomeInvalid: (@Sendable (Session) -> Void)?
        /// What to ask next in the place of a redirect; `nil` stops there.
        public var taskWillRedirect:
            (@Sendable (any SessionTask, _ to: TransferRequest, _ after: ResponseHead) -> TransferRequest?)?
        public var taskDidSend: (@Sendable (any SessionTask, _ bytes: Int64) -> Void)?
        /// In the place of the request's completion: its handlers do not run.
        public var downloadTaskDidComplete: (@Sendable (DownloadTask, DownloadOutcome) -> Void)?
        public var uploadTaskDidComplete: (@Sendable (UploadTask, UploadOutcome) -> Void)?
        public var downloadTaskDidWrite: (@Sendable (DownloadTask, _ bytes: Int64) -> Void)?
        public var downloadTaskDidResume: (@Sendable (DownloadTask, _ offset: Int64) -> Void)?
        /// Bytes that were there no longer count.
        public var downloadTaskDidRestart: (@Sendable (DownloadTask, _ reason: String) -> Void)?
        /// Every byte is here; the file is about to be synced, verified and named.
        public var downloadTaskDidReceiveAll: (@Sendable (DownloadTask) -> Void)?
        public var downloadTaskWantsCheckpoint: (@Sendable (DownloadTask) -> Void)?

        public init() {}
    }

    private struct State {
        var overrides = Overrides()
        var requests: [Int: Request] = [:]
        var retrier: (any RequestRetrier)?
    }

    private let state = Mutex(State())

    public init() {}

    public var overrides: Overrides {
        get { state.withLock { $0.overrides } }
        set { state.withLock { $0.overrides = newValue } }
    }

    /// Asked when a request has failed.
    public var retrier: (any RequestRetrier)? {
        get { state.withLock { $0.retrier } }
        set { state.withLock { $0.retrier = newValue } }
    }

    /// The request that a task belongs to, until it is complete.
    public subscript(task: any SessionTask) -> Request? {
        get { state.withLock { $0.requests[task.identifier] } }
        set { state.withLock { $0.requests[task.identifier] = newValue } }
    }

    /// Requests that are not complete.
    public var requestCount: Int { state.withLock { $0.requests.count } }

    // MARK: From the session

    func sessionDidBecomeInvalid(_ session: Session) {
        overrides.sessionDidBecomeInvalid?(session)
    }

    func task(_ task: any SessionTask, willRedirectTo request: TransferRequest, after head: ResponseHead)
        -> TransferRequest?
    {
        guard let closure = overrides.taskWillRedirect else { return request }
        return closure(task, request, head)
    }

    func task(_ task: any SessionTask, didSend bytes: Int64) {
        overrides.taskDidSend?(task, bytes)
    }

    func downloadTask(_ task: DownloadTask, didWrite bytes: Int64) {
        overrides.downloadTaskDidWrite?(task, bytes)
    }

    func downloadTask(_ task: DownloadTask, didResumeAt offset: Int64) {
        overrides.downloadTaskDidResume?(task, offset)
    }

    func downloadTask(_ task: DownloadTask, didRestartBecause reason: String) {
        overrides.downloadTaskDidRestart?(task, reason)
    }

    func downloadTaskDidReceiveAll(_ task: DownloadTask) {
        if let closure = overrides.downloadTaskDidReceiveAll { return closure(task) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.received?()
    }

    func downloadTaskWantsCheckpoint(_ task: DownloadTask) {
        if let closure = overrides.downloadTaskWantsCheckpoint { return closure(task) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.wantsCheckpoint?()
    }

    func downloadTask(_ task: DownloadTask, didComplete outcome: DownloadOutcome) {
        let request = remove(task)
        if let closure = overrides.downloadTaskDidComplete { return closure(task, outcome) }
        guard let request, let delegate = request.delegate as? DownloadTaskDelegate else { return }
        delegate.note(outcome)
        switch outcome {
        case .finished: delegate.complete(error: nil)
        case .failed(let error, _): retry(request, after: error)
        }
    }

    func uploadTask(_ task: UploadTask, didComplete outcome: UploadOutcome) {
        let request = remove(task)
        if let closure = overrides.uploadTaskDidComplete { return closure(task, outcome) }
        guard let request else { return }
        switch outcome {
        case .finished: request.delegate.complete(error: nil)
        case .failed(let error): retry(request, after: error)
        }
    }

    private func remove(_ task: any SessionTask) -> Request? {
        state.withLock { $0.requests.removeValue(forKey: task.identifier) }
    }

    /// Asks the retrier; the request, and with it its handlers, is held until it has an answer.
    private func retry(_ request: Request, after error: TransferError) {
        guard let retrier, error.code != .cancelled, error.code != .invalidated, !request.delegate.isCancelled else {
            return request.delegate.complete(error: error)
        }
        let delay = Task {
            switch await retrier.retry(request, after: error) {
            case .doNotRetry: request.delegate.complete(error: error)
            case .retry(let milliseconds):
                if milliseconds > 0 { try? await Task.sleep(for: .milliseconds(milliseconds)) }
                request.startAttempt(isRetry: true)
            }
        }
        request.delegate.wait(in: delay)
    }
}
