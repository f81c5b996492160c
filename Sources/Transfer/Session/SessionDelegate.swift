import Synchronization

/// The receiver of all callbacks of a session. A closure of ``Overrides`` replaces the standard behaviour. Without one,
/// the callback goes to the request's own ``TaskDelegate``, and if that does not handle it, the default applies.
///
/// The closures are set as properties of the delegate itself: `delegate.taskDidComplete = { … }`.
@dynamicMemberLookup
public final class SessionDelegate: TaskCallbacks {
    private struct State {
        var overrides = Overrides()
        var requests: [Int: Request] = [:]
        var retrier: (any RequestRetrier)?
        var backgroundCompletionHandler: (@Sendable () -> Void)?
        weak var session: Session?
    }

    private let state = Mutex(State())
    /// The raw value of the ``Callbacks`` that have a closure. Atomic, so that the handling of received bytes takes no
    /// lock when there is no closure.
    private let overridden = Atomic<UInt32>(0)

    /// Creates a delegate that overrides nothing.
    public init() {}

    /// A closure of ``Overrides``, set and read as a property of the delegate. `nil` restores the standard behaviour.
    public subscript<Closure>(
        dynamicMember closure: any WritableKeyPath<Overrides, Closure?> & Sendable
    ) -> Closure? {
        get { state.withLock { $0.overrides }[keyPath: closure] }
        set {
            // Crossing into the lock's closure is safe: every closure of `Overrides` is `@Sendable`.
            nonisolated(unsafe) let newValue = newValue
            state.withLock { state in
                state.overrides[keyPath: closure] = newValue
                overridden.store(state.overrides.callbacks.rawValue, ordering: .releasing)
            }
        }
    }

    /// Returns whether a callback has a closure.
    public func responds(to callback: Callbacks) -> Bool {
        overridden.load(ordering: .acquiring) & callback.rawValue != 0
    }

    /// Returns the closure for a callback, if there is one.
    private func closure<Closure>(
        _ callback: Callbacks, _ path: KeyPath<Overrides, Closure?>
    ) -> Closure? {
        guard responds(to: callback) else { return nil }
        return state.withLock { $0.overrides }[keyPath: path]
    }

    /// The retrier, consulted when a request has failed.
    public var retrier: (any RequestRetrier)? {
        get { state.withLock { $0.retrier } }
        set { state.withLock { $0.retrier = newValue } }
    }

    /// The handler behind ``SessionManager/backgroundCompletionHandler``.
    var backgroundCompletionHandler: (@Sendable () -> Void)? {
        get { state.withLock { $0.backgroundCompletionHandler } }
        set { state.withLock { $0.backgroundCompletionHandler = newValue } }
    }

    /// The request that a task belongs to, until the task is complete.
    public subscript(task: any SessionTask) -> Request? {
        get { state.withLock { $0.requests[task.identifier] } }
        set { state.withLock { $0.requests[task.identifier] = newValue } }
    }

    /// The number of requests that are not complete.
    public var requestCount: Int { state.withLock { $0.requests.count } }

    private func remove(_ task: any SessionTask) -> Request? {
        state.withLock { $0.requests.removeValue(forKey: task.identifier) }
    }

    // MARK: From the session

    /// Records the session that this delegate belongs to.
    func attach(to session: Session) { state.withLock { $0.session = session } }

    func session(didBecomeInvalid session: Session) {
        closure(.sessionDidBecomeInvalid, \.sessionDidBecomeInvalid)?(session, nil)
    }

    func session(didFindFault description: String) {
        closure(.sessionDidFindFault, \.sessionDidFindFault)?(description)
    }

    func session(didFinishEvents session: Session) {
        if let closure = closure(.sessionDidFinishEvents, \.sessionDidFinishEvents) { return closure(session) }
        if let handler = backgroundCompletionHandler { HandlerQueue.shared.run(handler) }
    }

    // MARK: From any task

    func originalRequest(of task: any SessionTask) -> TransferRequest? { self[task]?.original }

    func mayRetry(_ task: any SessionTask) -> Bool? { self[task]?.mayBeTriedAgain }

    func uploadRemains(of task: any SessionTask) -> UploadRemains? { (self[task] as? UploadRequest)?.remains }

    /// Returns whether a closure decides on the task's redirects.
    func decidesRedirects(of task: any SessionTask) -> Bool {
        responds(to: .taskWillPerformHTTPRedirection) || self[task]?.delegate.taskWillPerformHTTPRedirection != nil
    }

    func task(
        _ task: any SessionTask, willPerformHTTPRedirection response: ResponseHead, newRequest: TransferRequest,
        completion: @escaping @Sendable (TransferRequest?) -> Void
    ) {
        if let closure = closure(.taskWillPerformHTTPRedirection, \.taskWillPerformHTTPRedirectionWithCompletion) {
            closure(task, response, newRequest, completion)
        } else if let closure = closure(.taskWillPerformHTTPRedirection, \.taskWillPerformHTTPRedirection) {
            completion(closure(task, response, newRequest))
        } else if let closure = self[task]?.delegate.taskWillPerformHTTPRedirection {
            completion(closure(task, response, newRequest))
        } else {
            completion(newRequest)
        }
    }

    /// Whether a closure of this delegate decides on a server's certificate, in addition to the host's trust policy.
    var decidesTrust: Bool { responds(to: [.taskDidReceiveChallenge, .sessionDidReceiveChallenge]) }

    /// Returns whether the task's own delegate decides on a server's certificate.
    func decidesOwnTrust(of task: any SessionTask) -> Bool { self[task]?.delegate.taskDidReceiveChallenge != nil }

    /// Resolves a challenge. The session's closures come first for server trust, which concerns all its tasks. For
    /// credentials they are called only if the task has no closure and no request.
    func task(
        _ task: any SessionTask, didReceive challenge: AuthenticationChallenge,
        completion: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) {
        let request = self[task]
        if challenge.serverTrust != nil, ask(challenge, completion) { return }
        if let closure = closure(.taskDidReceiveChallenge, \.taskDidReceiveChallengeWithCompletion) {
            closure(task, challenge, completion)
        } else if let closure = closure(.taskDidReceiveChallenge, \.taskDidReceiveChallenge) {
            let (disposition, credential) = closure(task, challenge)
            completion(disposition, credential)
        } else if let request {
            let (disposition, credential) = request.delegate.answer(challenge, of: task)
            completion(disposition, credential)
        } else if !ask(challenge, completion) {
            let (disposition, credential) = TaskDelegate.defaultAnswer(challenge, credential: nil)
            completion(disposition, credential)
        }
    }

    /// Passes a challenge to the session's closure.
    ///
    /// - Returns: whether there is such a closure.
    private func ask(
        _ challenge: AuthenticationChallenge,
        _ completion: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) -> Bool {
        guard let session = state.withLock({ $0.session }) else { return false }
        if let closure = closure(.sessionDidReceiveChallenge, \.sessionDidReceiveChallengeWithCompletion) {
            closure(session, challenge, completion)
        } else if let closure = closure(.sessionDidReceiveChallenge, \.sessionDidReceiveChallenge) {
            let (disposition, credential) = closure(session, challenge)
            completion(disposition, credential)
        } else {
            return false
        }
        return true
    }

    func decidesBodyStreams(of task: any SessionTask) -> Bool {
        responds(to: .taskNeedNewBodyStream) || self[task]?.delegate.taskNeedNewBodyStream != nil
    }

    func task(_ task: any SessionTask, needNewBodyStream completion: @escaping @Sendable (BodyStream?) -> Void) {
        if let closure = closure(.taskNeedNewBodyStream, \.taskNeedNewBodyStreamWithCompletion) {
            closure(task, completion)
        } else if let closure = closure(.taskNeedNewBodyStream, \.taskNeedNewBodyStream) {
            completion(closure(task))
        } else {
            completion(self[task]?.delegate.taskNeedNewBodyStream?(task))
        }
    }

    func task(_ task: any SessionTask, didSendBodyData bytes: Int64, total: Int64, expected: Int64?) {
        closure(.taskDidSendBodyData, \.taskDidSendBodyData)?(task, bytes, total, expected)
    }

    func task(_ task: any LoopTask, didCompleteWith error: TransferError?) {
        let request = remove(task)
        closure(.taskDidFinishCollectingMetrics, \.taskDidFinishCollectingMetrics)?(task, task.metrics)
        request?.delegate.finish(task, error)
        if let closure = closure(.taskDidComplete, \.taskDidComplete) {
            closure(task, error)
            request?.complete(error)
        } else {
            request?.attemptDidEnd(error, retrier: retrier)
        }
    }

    // MARK: From data tasks

    func decidesResponses(of task: DataTask) -> Bool { responds(to: .dataTaskDidReceiveResponse) }

    func dataTask(
        _ task: DataTask, didReceive response: ResponseHead,
        completion: @escaping @Sendable (ResponseDisposition) -> Void
    ) {
        if let closure = closure(.dataTaskDidReceiveResponse, \.dataTaskDidReceiveResponseWithCompletion) {
            closure(task, response, completion)
        } else {
            completion(closure(.dataTaskDidReceiveResponse, \.dataTaskDidReceiveResponse)?(task, response) ?? .allow)
        }
    }

    var receivesData: Bool { responds(to: .dataTaskDidReceiveData) }

    func dataTask(_ task: DataTask, didReceive bytes: [UInt8]) {
        closure(.dataTaskDidReceiveData, \.dataTaskDidReceiveData)?(task, bytes)
    }

    /// Returns whether a closure decides on the storage of the task's response.
    func decidesCaching(of task: DataTask) -> Bool {
        responds(to: .dataTaskWillCacheResponse) || dataDelegate(of: task)?.dataTaskWillCacheResponse != nil
    }

    func dataTask(
        _ task: DataTask, willCache response: CachedResponse,
        completion: @escaping @Sendable (CachedResponse?) -> Void
    ) {
        if let closure = closure(.dataTaskWillCacheResponse, \.dataTaskWillCacheResponseWithCompletion) {
            closure(task, response, completion)
        } else if let closure = closure(.dataTaskWillCacheResponse, \.dataTaskWillCacheResponse) {
            completion(closure(task, response))
        } else if let closure = dataDelegate(of: task)?.dataTaskWillCacheResponse {
            completion(closure(task, response))
        } else {
            completion(response)
        }
    }

    private func dataDelegate(of task: DataTask) -> DataTaskDelegate? { self[task]?.delegate as? DataTaskDelegate }

    /// Moves the request from the data task to the download task.
    func dataTask(_ task: DataTask, didBecome download: DownloadTask) {
        if let request = remove(task) {
            self[download] = request
            request.delegate.replace(by: download)
            // The request may have been cancelled or suspended while it had only the old task.
            if request.isCancelled { download.cancel() } else { request.delegate.synchronizeTaskState() }
        }
        closure(.dataTaskDidBecomeDownloadTask, \.dataTaskDidBecomeDownloadTask)?(task, download)
    }

    // MARK: From download tasks

    /// Validates the head of a response.
    ///
    /// - Returns: the reason why the body must not be written to the file; `nil` if it may.
    func downloadTask(_ task: DownloadTask, validate head: ResponseHead, isEmpty: Bool) -> TransferError? {
        self[task]?.validate(head, isEmpty: isEmpty)
    }

    func downloadTask(_ task: DownloadTask, didWriteData bytes: Int64, total: Int64, expected: Int64?) {
        closure(.downloadTaskDidWriteData, \.downloadTaskDidWriteData)?(task, bytes, total, expected)
    }

    func downloadTask(_ task: DownloadTask, didResumeAtOffset offset: Int64, expected: Int64?) {
        if let closure = closure(.downloadTaskDidResumeAtOffset, \.downloadTaskDidResumeAtOffset) {
            return closure(task, offset, expected)
        }
        (self[task]?.delegate as? DownloadTaskDelegate)?.didResume(at: offset)
    }

    func downloadTask(_ task: DownloadTask, didRestartBecause reason: String) {
        closure(.downloadTaskDidRestart, \.downloadTaskDidRestart)?(task, reason)
    }

    func downloadTask(_ task: DownloadTask, didDoubt reason: String) {
        closure(.downloadTaskDidDoubt, \.downloadTaskDidDoubt)?(task, reason)
    }

    func downloadTask(didReceiveAll task: DownloadTask) {
        if let closure = closure(.downloadTaskDidReceiveAll, \.downloadTaskDidReceiveAll) { return closure(task) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.received?()
    }

    func downloadTask(wantsCheckpoint task: DownloadTask) {
        if let closure = closure(.downloadTaskWantsCheckpoint, \.downloadTaskWantsCheckpoint) { return closure(task) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.wantsCheckpoint?()
    }

    func downloadTask(_ task: DownloadTask, didFinishDownloading file: PublishedFile) {
        closure(.downloadTaskDidFinishDownloading, \.downloadTaskDidFinishDownloading)?(task, file)
    }

    // MARK: From stream tasks

    func streamTask(readClosedFor task: StreamTask) {
        if let closure = closure(.streamTaskReadClosed, \.streamTaskReadClosed) { return closure(task) }
        streamDelegate(of: task)?.streamTaskReadClosed?(task)
    }

    func streamTask(writeClosedFor task: StreamTask) {
        if let closure = closure(.streamTaskWriteClosed, \.streamTaskWriteClosed) { return closure(task) }
        streamDelegate(of: task)?.streamTaskWriteClosed?(task)
    }

    func streamTask(betterRouteDiscoveredFor task: StreamTask) {
        if let closure = closure(.streamTaskBetterRouteDiscovered, \.streamTaskBetterRouteDiscovered) {
            return closure(task)
        }
        streamDelegate(of: task)?.streamTaskBetterRouteDiscovered?(task)
    }

    func streamTask(_ task: StreamTask, didBecome reader: StreamReader, _ writer: StreamWriter) {
        if let closure = closure(
            .streamTaskDidBecomeInputAndOutputStreams, \.streamTaskDidBecomeInputAndOutputStreams)
        {
            return closure(task, reader, writer)
        }
        streamDelegate(of: task)?.streamTaskDidBecomeInputAndOutputStreams?(task, reader, writer)
    }

    private func streamDelegate(of task: StreamTask) -> StreamTaskDelegate? {
        self[task]?.delegate as? StreamTaskDelegate
    }
}
