import Curl
public import FoundationEssentials
import Synchronization

/// The delegate of one request, over all its attempts.
///
/// The session's delegate passes on the callbacks of the request's tasks that it has no closure for. A subclass may
/// override them. Its instances are made by a subclass of ``SessionDelegate``, in
/// ``SessionDelegate/makeDataTaskDelegate()`` and its like.
///
/// `@unchecked`, since the compiler cannot check a class with subclasses: every stored property here and in the
/// subclasses is a `let` of a `Sendable` type. The same is required of subclasses elsewhere.
open class TaskDelegate: @unchecked Sendable {
    private struct State {
        var life = RequestLife()
        var task: (any SessionTask)?
        var error: TransferError?
        var credential: Credential?
        var metrics = TransferMetrics()
        var failedAttempts: [FailedAttempt] = []
        /// The time at which the request was first resumed, or began anew after its end.
        var began: MonotonicTime?
        /// The time at which the request was completed.
        var ended: MonotonicTime?
        /// The work between two attempts or before the first: adapter, retrier or delay.
        var delay: Task<Void, Never>?
        var waits = 0
        var willPerformHTTPRedirection:
            (@Sendable (any SessionTask, ResponseHead, TransferRequest) -> TransferRequest?)?
        var didReceiveChallenge:
            (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        var needNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)?
        var didCompleteWithError: (@Sendable ((any SessionTask)?, TransferError?) -> Void)?
    }

    private let state = Mutex(State())
    /// Operations that start in order, once the request is complete. The handlers of the request are among them.
    public let queue = HandlerList()
    /// Work that has to end before those operations start.
    let precedingWork = PrecedingWork()

    /// Creates a delegate without a task.
    public init() {}

    /// The response body, once the request is complete; `nil` if it is not kept in memory.
    open var data: Data? { nil }

    /// The task of the current attempt. A new one resets ``error`` and ``initialResponseTime``.
    public var task: (any SessionTask)? { state.withLock { $0.task } }
    /// The reason why the request failed; the first reason is kept.
    public var error: TransferError? {
        get { state.withLock { $0.error } }
        set { state.withLock { $0.error = newValue } }
    }
    /// The number of attempts after the first.
    public var retryCount: Int { state.withLock { $0.life.retryCount } }
    /// Whether the request was cancelled. It may have completed before that.
    public var isCancelled: Bool { state.withLock { $0.life.isCancelled } }
    /// Whether the request is final and its handlers may run.
    public var isComplete: Bool { state.withLock { $0.life.isComplete } }
    /// The credential for challenges, preferred to a stored one.
    public var credential: Credential? {
        get { state.withLock { $0.credential } }
        set { state.withLock { $0.credential = newValue } }
    }
    /// The metrics of all attempts that have ended.
    public var metrics: TransferMetrics { state.withLock { $0.metrics } }
    /// The time at which the first byte of the last response was received, by the wall clock.
    public var initialResponseTime: Date? {
        guard let exchange = (task?.metrics ?? metrics).last, let firstByte = exchange.timeline.firstByte else {
            return nil
        }
        let moment = MonotonicTime(nanoseconds: exchange.began).advanced(milliseconds: firstByte / 1000)
        return Date(timeIntervalSinceNow: -Double(MonotonicTime.now().milliseconds(since: moment)) / 1000)
    }

    // MARK: Closures, where the session's delegate has none

    /// The callback that returns the next request, in place of `newRequest`; `nil` makes the redirect response the
    /// final one.
    public var taskWillPerformHTTPRedirection:
        (@Sendable (any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest) -> TransferRequest?)?
    {
        get { state.withLock { $0.willPerformHTTPRedirection } }
        set { state.withLock { $0.willPerformHTTPRedirection = newValue } }
    }

    /// The callback that decides on a challenge, in place of the request's own credential or a stored one.
    public var taskDidReceiveChallenge:
        (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
    {
        get { state.withLock { $0.didReceiveChallenge } }
        set { state.withLock { $0.didReceiveChallenge = newValue } }
    }

    /// The callback that returns a stream of the same length for a body that has to be sent again; with `nil` the
    /// body's own stream is created again.
    public var taskNeedNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)? {
        get { state.withLock { $0.needNewBodyStream } }
        set { state.withLock { $0.needNewBodyStream = newValue } }
    }

    /// The callback for the end of the request, after validation and retries, in place of recording ``error``: the
    /// request succeeds unless the closure sets ``error``. The handlers of the request run after it. The task is `nil`
    /// if there was no attempt.
    public var taskDidCompleteWithError: (@Sendable ((any SessionTask)?, _ error: TransferError?) -> Void)? {
        get { state.withLock { $0.didCompleteWithError } }
        set { state.withLock { $0.didCompleteWithError = newValue } }
    }

    // MARK: Callbacks

    /// Decides on a redirect: returns the next request, or `nil` to make the redirect response the final one. Runs
    /// ``taskWillPerformHTTPRedirection``, if there is one.
    open func task(
        _ task: any SessionTask, willPerformHTTPRedirection response: ResponseHead, newRequest: TransferRequest
    ) -> TransferRequest? {
        guard let closure = taskWillPerformHTTPRedirection else { return newRequest }
        return closure(task, response, newRequest)
    }

    /// Returns a stream for a body that has to be sent again, or `nil` for the body's own stream. Runs
    /// ``taskNeedNewBodyStream``, if there is one.
    open func taskNeedsNewBodyStream(_ task: any SessionTask) -> BodyStream? { taskNeedNewBodyStream?(task) }

    /// Handles the end of the request, after validation and retries: runs ``taskDidCompleteWithError``, if there is
    /// one, and records the error otherwise. The handlers of the request run afterwards.
    ///
    /// - Parameter task: the task of the last attempt; `nil` if there was none.
    open func task(_ task: (any SessionTask)?, didCompleteWithError error: TransferError?) {
        if let closure = taskDidCompleteWithError { return closure(task, error) }
        self.error = error
    }

    /// Whether the callbacks may be overridden, so that they have to be made.
    var isSubclassed: Bool {
        let standard: [TaskDelegate.Type] = [
            DataTaskDelegate.self, DownloadTaskDelegate.self, UploadTaskDelegate.self, StreamTaskDelegate.self,
            WebSocketTaskDelegate.self,
        ]
        return !standard.contains { $0 == type(of: self) }
    }

    /// Resolves a challenge. Runs ``taskDidReceiveChallenge``, if there is one. Otherwise server trust is left to the
    /// host's trust policy. For credentials, a second failure rejects the protection space. Otherwise the request's own
    /// credential is used, and then a stored one.
    open func task(
        _ task: any SessionTask, didReceive challenge: AuthenticationChallenge
    ) -> (ChallengeDisposition, Credential?) {
        if let closure = taskDidReceiveChallenge { return closure(task, challenge) }
        return Self.defaultAnswer(challenge, credential: challenge.isFromOrigin ? credential : nil)
    }

    static func defaultAnswer(
        _ challenge: AuthenticationChallenge, credential: Credential?
    ) -> (ChallengeDisposition, Credential?) {
        if challenge.serverTrust != nil { return (.performDefaultHandling, nil) }
        if challenge.previousFailureCount > 0 { return (.rejectProtectionSpace, nil) }
        guard let credential = credential ?? challenge.proposedCredential else { return (.performDefaultHandling, nil) }
        return (.useCredential, credential)
    }

    // MARK: Life cycle of the request

    /// Starts or resumes the request.
    ///
    /// - Returns: `.begin` on the first call, `.resume` if the request was suspended, otherwise `.nothing`.
    func start() -> RequestLife.Start {
        let action = state.withLock { state in
            let action = state.life.start()
            if action == .begin { state.began = .now() }
            return action
        }
        if action == .resume { synchronizeTaskState() }
        return action
    }

    var isStarted: Bool { state.withLock { $0.life.isStarted } }

    /// The time in milliseconds from the first resumption of the request to its end, over all its attempts and the
    /// waits between them; before the end, up to now. `nil` if it was never resumed. A request that begins anew after
    /// its end counts from there.
    var elapsed: Int64? {
        let (began, ended) = state.withLock { ($0.began, $0.ended) }
        return began.map { (ended ?? .now()).milliseconds(since: $0) }
    }

    /// Suspends the request.
    ///
    /// - Returns: whether the request was running until now.
    func suspend() -> Bool {
        let stops = state.withLock { $0.life.suspend() }
        if stops { synchronizeTaskState() }
        return stops
    }

    /// Suspends or resumes the attempt's task, so that it matches the state of the request.
    ///
    /// Two threads may change the state at the same time and reach the task in the opposite order. So each thread
    /// checks the state again after it has changed the task.
    func synchronizeTaskState() {
        var now = state.withLock { ($0.task, $0.life.isSuspended) }
        while let task = now.0 {
            let isSuspended = now.1
            if isSuspended { task.suspend() } else { task.resume() }
            now = state.withLock { ($0.task, $0.life.isSuspended) }
            if now.0 === task, now.1 == isSuspended { return }
        }
    }

    /// Counts a retry, before another attempt begins.
    ///
    /// - Parameters:
    ///   - generation: the value of ``generation`` when the attempt failed.
    ///   - failed: the attempt that failed.
    /// - Returns: whether the request still wants an attempt.
    func countRetry(in generation: Int, after failed: FailedAttempt) -> Bool {
        state.withLock { state in
            guard state.life.retry(in: generation) else { return false }
            if state.failedAttempts.count >= FailedAttempt.limit { state.failedAttempts.removeFirst() }
            state.failedAttempts.append(failed)
            return true
        }
    }

    /// The attempts that further attempts followed, the last ``FailedAttempt/limit`` of them.
    var failedAttempts: [FailedAttempt] { state.withLock { $0.failedAttempts } }

    /// The number of times that the request began anew after its end. An adapter or a retrier that ignored the
    /// cancellation of an earlier attempt may end in a later one, on which it has no effect.
    var generation: Int { state.withLock { $0.life.generation } }

    /// Records the task of a new attempt.
    ///
    /// - Parameters:
    ///   - task: the task.
    ///   - generation: the value of ``generation`` when the attempt was decided on.
    /// - Returns: whether the request still wants an attempt.
    func begin(_ task: any SessionTask, in generation: Int) -> Bool {
        state.withLock { state in
            guard state.life.beginAttempt(of: generation) else { return false }
            state.task = task
            state.error = nil
            return true
        }
    }

    /// Whether the request is suspended. A task that begins then waits.
    var isSuspended: Bool { state.withLock { $0.life.isSuspended } }

    func replace(by task: any SessionTask) { state.withLock { $0.task = task } }

    /// Cancels the request, and ends its task with `end`.
    ///
    /// - Returns: `.complete` if there is no attempt whose end would complete the request.
    func cancel(_ end: (any SessionTask) -> Void = { $0.cancel() }) -> RequestLife.Cancellation {
        let (action, task, delay) = state.withLock { state in
            defer { state.delay = nil }
            return (state.life.cancel(), state.task, state.delay)
        }
        delay?.cancel()
        if case .endAttempt = action, let task { end(task) }
        return action
    }

    /// Runs the work before the next attempt in the Swift task that `delay` creates. Cancelling the request cancels
    /// that task.
    ///
    /// - Parameter delay: creates the task. The task must not run on this thread before it is returned.
    func wait(in delay: () -> Task<Void, Never>) {
        state.withLock { state in
            // The thread that cancelled the request also completes it.
            guard !state.life.isCancelled, !state.life.isComplete else { return }
            // Created within the lock: the task may end before it could be stored otherwise.
            state.delay = delay()
            state.waits += 1
        }
    }

    /// The number of calls of ``wait(in:)`` that created a task.
    var waits: Int { state.withLock { $0.waits } }

    /// Registers work before the next attempt that may already have ended, so that cancelling the request cancels it.
    ///
    /// - Parameter waits: the value of ``waits`` before the work began. If it has grown, another wait has followed, and
    ///   that one has to be cancelled instead.
    func wait(in delay: Task<Void, Never>, after waits: Int) {
        let isCancelled = state.withLock { state in
            guard !state.life.isComplete, !state.life.isUnderWay, state.waits == waits else {
                return state.life.isCancelled
            }
            state.delay = delay
            return state.life.isCancelled
        }
        if isCancelled { delay.cancel() }
    }

    /// Records that the next attempt is certain and waits for its time.
    func setWaiting() { state.withLock { $0.life.isWaiting = true } }

    /// Ends the wait for the next attempt, so that the attempt begins now.
    ///
    /// - Returns: whether an attempt waited.
    func endWaiting() -> Bool {
        let delay = state.withLock { state -> Task<Void, Never>? in
            guard state.life.isWaiting, !state.life.isCancelled else { return nil }
            state.life.isWaiting = false
            return state.delay
        }
        delay?.cancel()
        return delay != nil
    }

    /// Records that the attempt's task is complete. From now on, cancelling the request does not involve a task.
    func endAttempt() { state.withLock { $0.life.endAttempt() } }

    // MARK: From the session

    /// Records the end of an attempt, and takes over the results of its task.
    func finish(_ task: any SessionTask, _ error: TransferError?) {
        let attempt = task.metrics
        state.withLock { $0.metrics.add(attempt) }
    }

    /// Completes the request, unless it is complete already.
    ///
    /// - Parameter before: called before the end is announced, and only if the request was not complete. It returns a
    ///   closure to call when the present handlers have run.
    func complete(error: TransferError?, before: () -> (@Sendable () -> Void)? = { nil }) {
        let isFirst = state.withLock { state in
            guard state.life.complete() else { return false }
            state.ended = .now()
            // The pending delay must not keep the request alive for the rest of its time.
            state.delay = nil
            return true
        }
        if isFirst {
            let after = before()
            self.task(task, didCompleteWithError: error)
            didEnd(error)
            precedingWork.run { [self] in openQueue(whenDone: after) }
        }
    }

    /// Runs the handlers. From now on the request can begin anew.
    private func openQueue(whenDone: (@Sendable () -> Void)?) {
        // Within one lock, so that the handlers of a further attempt do not start with these.
        let startHandlers = state.withLock { state in
            state.life.endAnnouncement()
            return queue.opening(whenDone: whenDone)
        }
        startHandlers()
    }

    /// Prepares another attempt of a complete request.
    ///
    /// - Returns: `false` if the request is not complete, or if its end is still being announced.
    func reopen() -> Bool {
        state.withLock { state in
            guard state.life.reopen() else { return false }
            (state.began, state.ended) = (.now(), nil)
            state.error = nil
            queue.suspend()
            precedingWork.reopen()
            return true
        }
    }

    /// Called when the request is complete, just before its handlers run.
    func didEnd(_ error: TransferError?) {}
}

/// An attempt of a request that failed and that another attempt followed.
public struct FailedAttempt: Sendable {
    /// The number of such attempts that a request keeps.
    static let limit = 32

    /// The reason why it failed.
    public let error: TransferError
    /// The metrics of this attempt alone.
    public let metrics: TransferMetrics
    /// The number of body bytes that the request had received or sent at the end of the attempt, over all attempts.
    public let transferredBytes: Int64
    /// The time of the end in nanoseconds of the monotonic clock (CLOCK_MONOTONIC).
    public let ended: UInt64
}
