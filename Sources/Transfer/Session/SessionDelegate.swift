import Synchronization

/// The receiver of all callbacks of a session. A closure of ``Overrides`` replaces the standard behaviour. Without one,
/// the callback goes to the request's own ``TaskDelegate``, and if that does not handle it, the default applies.
///
/// The closures are set as properties of the delegate itself: `delegate.taskDidComplete = { … }`.
///
/// A subclass may override the methods, one for each callback. The implementation here runs the closure or the default.
/// The methods run on the session's threads and must not block. A completion handler must be called once, at any time
/// and on any thread.
///
/// `@unchecked`, since the compiler cannot check a class with subclasses: every stored property is a `let` of a
/// `Sendable` type. The same is required of subclasses.
@dynamicMemberLookup
open class SessionDelegate: @unchecked Sendable {
    private struct State {
        var overrides = Overrides()
        var requests: [Int: Request] = [:]
        var retrier: (any RequestRetrier)?
        var backgroundCompletionHandler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    /// The raw value of the ``Callbacks`` that have a closure. Atomic, so that the handling of received bytes takes no
    /// lock when there is no closure.
    private let overridden = Atomic<UInt32>(0)
    /// Whether the session has event monitors. Atomic for the same reason.
    private let isMonitored = Atomic<Bool>(false)

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

    /// Whether the methods may be overridden, so that the session has to call all of them.
    private var isSubclassed: Bool { type(of: self) != SessionDelegate.self }

    /// Returns whether the session has to make a callback.
    private func handles(_ callback: Callbacks) -> Bool { responds(to: callback) || isSubclassed }

    // MARK: Delegates of requests

    /// Creates the delegate of a data request.
    open func makeDataTaskDelegate() -> DataTaskDelegate { DataTaskDelegate() }

    /// Creates the delegate of an upload.
    open func makeUploadTaskDelegate() -> UploadTaskDelegate { UploadTaskDelegate() }

    /// Creates the delegate of a download.
    open func makeDownloadTaskDelegate() -> DownloadTaskDelegate { DownloadTaskDelegate() }

    /// Creates the delegate of a stream.
    open func makeStreamTaskDelegate() -> StreamTaskDelegate { StreamTaskDelegate() }

    // MARK: Closures

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

    /// The request that a task belongs to, until the task is complete.
    public subscript(task task: any SessionTask) -> Request? {
        get { self[task] }
        set { self[task] = newValue }
    }

    /// The number of requests that are not complete.
    public var requestCount: Int { state.withLock { $0.requests.count } }

    private func remove(_ task: any SessionTask) -> Request? {
        state.withLock { $0.requests.removeValue(forKey: task.identifier) }
    }

    // MARK: From the session

    /// Prepares the delegate for its session. It keeps no reference: a strong one would be a cycle, and a weak one would
    /// slow down every use of the session.
    func attach(to session: Session) {
        isMonitored.store(session.monitors != nil, ordering: .releasing)
    }

    /// Called when the session was invalidated and its last task is complete.
    open func session(_ session: Session, didBecomeInvalidWithError error: TransferError?) {
        closure(.sessionDidBecomeInvalid, \.sessionDidBecomeInvalid)?(session, error)
    }

    /// Called for an internal fault; see ``Overrides/sessionDidFindFault``.
    open func session(didFindFault description: String) {
        closure(.sessionDidFindFault, \.sessionDidFindFault)?(description)
    }

    /// Called when all events of the session so far have been delivered. Runs the manager's
    /// ``SessionManager/backgroundCompletionHandler`` by default.
    open func session(didFinishEventsOf session: Session) {
        if let closure = closure(.sessionDidFinishEvents, \.sessionDidFinishEvents) { return closure(session) }
        if let handler = backgroundCompletionHandler { HandlerQueue.shared.run(handler) }
    }

    // MARK: From any task

    /// Returns the request before adapters; `nil` if the task belongs to no request.
    func originalRequest(of task: any SessionTask) -> TransferRequest? { self[task]?.original }

    /// Returns whether the task's request can have another attempt; `nil` if the task belongs to no request.
    func mayRetry(_ task: any SessionTask) -> Bool? { self[task]?.mayBeTriedAgain }

    /// Returns whether the first bytes of a download make a checkpoint due, whatever the session's interval.
    func wantsFirstCheckpoint(of task: DownloadTask) -> Bool {
        (self[task] as? DownloadRequest)?.downloadDelegate.wantsFirstCheckpoint ?? false
    }

    /// Returns the remains of the request's earlier attempts on a file server; `nil` if the task belongs to no upload
    /// request.
    func uploadRemains(of task: any SessionTask) -> UploadRemains? { (self[task] as? UploadRequest)?.remains }

    /// Observes the head of a response, redirects and challenges included.
    func task(_ task: any SessionTask, didReceive head: ResponseHead) {
        guard isMonitored.load(ordering: .acquiring), let request = self[task] else { return }
        request.session.monitors?.notify { $0.request(request, didReceive: head) }
    }

    /// Returns whether a closure decides on the task's redirects.
    func decidesRedirects(of task: any SessionTask) -> Bool {
        if handles(.taskWillPerformHTTPRedirection) { return true }
        guard let delegate = self[task]?.delegate else { return false }
        return delegate.taskWillPerformHTTPRedirection != nil || delegate.isSubclassed
    }

    /// Called for a redirect. `completion` takes the next request, or `nil` to make the redirect response the final
    /// one.
    open func task(
        _ task: any SessionTask, willPerformHTTPRedirection response: ResponseHead, newRequest: TransferRequest,
        completion: @escaping @Sendable (TransferRequest?) -> Void
    ) {
        if let closure = closure(.taskWillPerformHTTPRedirection, \.taskWillPerformHTTPRedirectionWithCompletion) {
            closure(task, response, newRequest, completion)
        } else if let closure = closure(.taskWillPerformHTTPRedirection, \.taskWillPerformHTTPRedirection) {
            completion(closure(task, response, newRequest))
        } else if let delegate = self[task]?.delegate {
            completion(delegate.task(task, willPerformHTTPRedirection: response, newRequest: newRequest))
        } else {
            completion(newRequest)
        }
    }

    /// Whether a closure of this delegate decides on a server's certificate, in addition to the host's trust policy.
    var decidesTrust: Bool { handles([.taskDidReceiveChallenge, .sessionDidReceiveChallenge]) }

    /// Returns whether the task's own delegate decides on a server's certificate.
    func decidesOwnTrust(of task: any SessionTask) -> Bool {
        self[task].map { $0.delegate.taskDidReceiveChallenge != nil || $0.delegate.isSubclassed } ?? false
    }

    private static func session(of task: any SessionTask) -> Session? { (task as? any LoopTask)?.session }

    /// Called for a challenge. The session's closures come first for server trust, which concerns all its tasks. For
    /// credentials they are called only if the task has no closure and no request.
    open func task(
        _ task: any SessionTask, didReceive challenge: AuthenticationChallenge,
        completion: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) {
        let request = self[task]
        if challenge.serverTrust != nil, decidesTrustForSession(of: task), let session = Self.session(of: task) {
            return self.session(session, didReceive: challenge, completion: completion)
        }
        if let closure = closure(.taskDidReceiveChallenge, \.taskDidReceiveChallengeWithCompletion) {
            closure(task, challenge, completion)
        } else if let closure = closure(.taskDidReceiveChallenge, \.taskDidReceiveChallenge) {
            let (disposition, credential) = closure(task, challenge)
            completion(disposition, credential)
        } else if let request {
            let (disposition, credential) = request.delegate.task(task, didReceive: challenge)
            completion(disposition, credential)
        } else if let session = Self.session(of: task) {
            self.session(session, didReceive: challenge, completion: completion)
        } else {
            let (disposition, credential) = TaskDelegate.defaultAnswer(challenge, credential: nil)
            completion(disposition, credential)
        }
    }

    /// Returns whether the session's method decides on the trust of a task's server: it has a closure, or it may be
    /// overridden and nothing else decides.
    private func decidesTrustForSession(of task: any SessionTask) -> Bool {
        if responds(to: .sessionDidReceiveChallenge) { return true }
        return isSubclassed && !responds(to: .taskDidReceiveChallenge) && !decidesOwnTrust(of: task)
    }

    /// Called for a challenge that concerns the session: the trust of a server if the session has a closure, and
    /// credentials for a task without a request.
    open func session(
        _ session: Session, didReceive challenge: AuthenticationChallenge,
        completion: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) {
        if let closure = closure(.sessionDidReceiveChallenge, \.sessionDidReceiveChallengeWithCompletion) {
            return closure(session, challenge, completion)
        }
        let (disposition, credential) =
            closure(.sessionDidReceiveChallenge, \.sessionDidReceiveChallenge)?(session, challenge)
            ?? TaskDelegate.defaultAnswer(challenge, credential: nil)
        completion(disposition, credential)
    }

    /// Returns whether a closure supplies the body's stream when the body is sent again.
    func decidesBodyStreams(of task: any SessionTask) -> Bool {
        if handles(.taskNeedNewBodyStream) { return true }
        guard let delegate = self[task]?.delegate else { return false }
        return delegate.taskNeedNewBodyStream != nil || delegate.isSubclassed
    }

    /// Called when a body stream has to be sent again. `completion` takes a new stream, or `nil` for the body's own.
    open func task(_ task: any SessionTask, needNewBodyStream completion: @escaping @Sendable (BodyStream?) -> Void) {
        if let closure = closure(.taskNeedNewBodyStream, \.taskNeedNewBodyStreamWithCompletion) {
            closure(task, completion)
        } else if let closure = closure(.taskNeedNewBodyStream, \.taskNeedNewBodyStream) {
            completion(closure(task))
        } else {
            completion(self[task]?.delegate.taskNeedsNewBodyStream(task))
        }
    }

    /// Called for sent body bytes: bytes in this piece, bytes sent so far, and the length of the body, if known.
    open func task(_ task: any SessionTask, didSendBodyData bytes: Int64, total: Int64, expected: Int64?) {
        closure(.taskDidSendBodyData, \.taskDidSendBodyData)?(task, bytes, total, expected)
    }

    /// Called with the metrics of a task's exchanges, just before the task is complete.
    open func task(_ task: any SessionTask, didFinishCollecting metrics: TransferMetrics) {
        closure(.taskDidFinishCollectingMetrics, \.taskDidFinishCollectingMetrics)?(task, metrics)
    }

    /// Called when a request is complete, after validation and retries and before its handlers, with the task of its
    /// last attempt. Also called for each completed task without a request.
    open func task(_ task: any SessionTask, didCompleteWithError error: TransferError?) {
        closure(.taskDidComplete, \.taskDidComplete)?(task, error)
    }

    /// Records the end of a task, and passes it on to its request.
    func task(_ task: any LoopTask, didEndWith error: TransferError?) {
        let request = self[task]
        if let request {
            request.session.monitors?.notify { [metrics = task.metrics] in
                $0.request(request, didCollect: metrics)
                $0.request(request, didComplete: task, with: error)
            }
        }
        self.task(task, didFinishCollecting: task.metrics)
        guard let request else { return self.task(task, didCompleteWithError: error) }
        request.delegate.finish(task, error)
        request.attemptDidEnd(error, retrier: retrier)
        // Without another attempt, the request has removed the task already.
        if request.task !== task || request.delegate.isComplete { _ = remove(task) }
    }

    // MARK: From data tasks

    /// Returns whether a closure decides on the task's response.
    func decidesResponses(of task: DataTask) -> Bool { handles(.dataTaskDidReceiveResponse) }

    /// Called for a response whose body is about to be received; `completion` decides what to do with it.
    open func dataTask(
        _ task: DataTask, didReceive response: ResponseHead,
        completion: @escaping @Sendable (ResponseDisposition) -> Void
    ) {
        if let closure = closure(.dataTaskDidReceiveResponse, \.dataTaskDidReceiveResponseWithCompletion) {
            closure(task, response, completion)
        } else {
            completion(closure(.dataTaskDidReceiveResponse, \.dataTaskDidReceiveResponse)?(task, response) ?? .allow)
        }
    }

    /// Whether a closure receives the bytes of every response.
    var receivesData: Bool { responds(to: .dataTaskDidReceiveData) }

    /// Whether a subclass may see the bytes of every response before they are kept.
    var observesData: Bool { isSubclassed }

    /// Called for received bytes. The implementation here keeps them or passes them on, as the request says, unless
    /// there is a closure for them.
    open func dataTask(_ task: DataTask, didReceive bytes: [UInt8]) {
        guard let closure = closure(.dataTaskDidReceiveData, \.dataTaskDidReceiveData) else { return task.keepPiece() }
        closure(task, bytes)
    }

    /// Returns whether a closure decides on the storage of the task's response.
    func decidesCaching(of task: DataTask) -> Bool {
        handles(.dataTaskWillCacheResponse) || dataDelegate(of: task)?.dataTaskWillCacheResponse != nil
    }

    /// Called for a complete, cacheable response; `completion` takes what to store, or `nil` to store nothing.
    open func dataTask(
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
            request.session.monitors?.notify { $0.request(request, didCreate: download) }
            // The request may have been cancelled or suspended while it had only the old task.
            if request.delegate.isCancelled { download.cancel() } else { request.delegate.synchronizeTaskState() }
        }
        dataTask(task, didBecomeDownloadTask: download)
    }

    /// Called when a download task continues with the data task's response.
    open func dataTask(_ task: DataTask, didBecomeDownloadTask download: DownloadTask) {
        closure(.dataTaskDidBecomeDownloadTask, \.dataTaskDidBecomeDownloadTask)?(task, download)
    }

    // MARK: From download tasks

    /// Validates the head of a response before its body is passed on.
    ///
    /// - Returns: the reason why the body must not be passed to a reader or written to a file; `nil` if it may.
    func task(_ task: any SessionTask, validate head: ResponseHead, isEmpty: Bool) -> TransferError? {
        self[task]?.validate(head, isEmpty: isEmpty)
    }

    /// Called for bytes written to the part file; see ``Overrides/downloadTaskDidWriteData``.
    open func downloadTask(_ task: DownloadTask, didWriteData bytes: Int64, total: Int64, expected: Int64?) {
        closure(.downloadTaskDidWriteData, \.downloadTaskDidWriteData)?(task, bytes, total, expected)
    }

    /// Called when a download resumes; see ``Overrides/downloadTaskDidResumeAtOffset``.
    open func downloadTask(_ task: DownloadTask, didResumeAtOffset offset: Int64, expected: Int64?) {
        if let closure = closure(.downloadTaskDidResumeAtOffset, \.downloadTaskDidResumeAtOffset) {
            return closure(task, offset, expected)
        }
        (self[task]?.delegate as? DownloadTaskDelegate)?.didResume(at: offset)
    }

    /// Called when a download starts again; see ``Overrides/downloadTaskDidRestart``.
    open func downloadTask(_ task: DownloadTask, didRestartBecause reason: String) {
        closure(.downloadTaskDidRestart, \.downloadTaskDidRestart)?(task, reason)
    }

    /// Called for a contradictory statement of a server; see ``Overrides/downloadTaskDidDoubt``.
    open func downloadTask(_ task: DownloadTask, didDoubt reason: String) {
        if let closure = closure(.downloadTaskDidDoubt, \.downloadTaskDidDoubt) { return closure(task, reason) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.didDoubt(reason)
    }

    /// Called when the last byte is received; see ``Overrides/downloadTaskDidReceiveAll``.
    open func downloadTask(didReceiveAll task: DownloadTask) {
        if let closure = closure(.downloadTaskDidReceiveAll, \.downloadTaskDidReceiveAll) { return closure(task) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.received?()
    }

    /// Called when a checkpoint is due; see ``Overrides/downloadTaskWantsCheckpoint``.
    open func downloadTask(wantsCheckpoint task: DownloadTask) {
        if let closure = closure(.downloadTaskWantsCheckpoint, \.downloadTaskWantsCheckpoint) { return closure(task) }
        (self[task]?.delegate as? DownloadTaskDelegate)?.wantsCheckpoint?()
    }

    /// Called when the file has its final name; see ``Overrides/downloadTaskDidFinishDownloading``.
    open func downloadTask(_ task: DownloadTask, didFinishDownloading file: PublishedFile) {
        closure(.downloadTaskDidFinishDownloading, \.downloadTaskDidFinishDownloading)?(task, file)
    }

    // MARK: From stream tasks

    /// Called at the end of the read side; see ``Overrides/streamTaskReadClosed``.
    open func streamTask(readClosedFor task: StreamTask) {
        if let closure = closure(.streamTaskReadClosed, \.streamTaskReadClosed) { return closure(task) }
        streamDelegate(of: task)?.streamTaskReadClosed?(task)
    }

    /// Called at the end of the write side; see ``Overrides/streamTaskWriteClosed``.
    open func streamTask(writeClosedFor task: StreamTask) {
        if let closure = closure(.streamTaskWriteClosed, \.streamTaskWriteClosed) { return closure(task) }
        streamDelegate(of: task)?.streamTaskWriteClosed?(task)
    }

    /// Called for a better route; see ``Overrides/streamTaskBetterRouteDiscovered``.
    open func streamTask(betterRouteDiscoveredFor task: StreamTask) {
        if let closure = closure(.streamTaskBetterRouteDiscovered, \.streamTaskBetterRouteDiscovered) {
            return closure(task)
        }
        streamDelegate(of: task)?.streamTaskBetterRouteDiscovered?(task)
    }

    /// Called when a stream becomes a reader and a writer; see
    /// ``Overrides/streamTaskDidBecomeInputAndOutputStreams``.
    open func streamTask(_ task: StreamTask, didBecome reader: StreamReader, _ writer: StreamWriter) {
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
