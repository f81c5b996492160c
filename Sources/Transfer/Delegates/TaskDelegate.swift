import Synchronization

/// The delegate of one request, over all its attempts.
///
/// `@unchecked`, since the compiler cannot check a class with subclasses: every stored property here and in the
/// subclasses is a `let` of a `Sendable` type.
public class TaskDelegate: @unchecked Sendable {
    private struct State {
        var life = RequestLife()
        var task: (any SessionTask)?
        var error: TransferError?
        var credential: Credential?
        var metrics = TransferMetrics()
        /// The work between two attempts or before the first: adapter, retrier or delay.
        var delay: Task<Void, Never>?
        var waits = 0
        var willPerformHTTPRedirection:
            (@Sendable (any SessionTask, ResponseHead, TransferRequest) -> TransferRequest?)?
        var didReceiveChallenge:
            (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
        var needNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)?
        var didComplete: (@Sendable (any SessionTask, TransferError?) -> Void)?
    }

    private let state = Mutex(State())
    /// Operations that start in order, once the request is complete.
    let queue = HandlerList()

    init() {}

    /// The task of the current attempt.
    public var task: (any SessionTask)? { state.withLock { $0.task } }
    /// The reason why the request failed; the first reason is kept.
    public var error: TransferError? { state.withLock { $0.error } }
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
    /// The time from the start of the last exchange to the first byte of its response, in microseconds.
    public var initialResponseTime: Int64? { metrics.last?.timeline.firstByte }

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

    /// The callback for the end of each attempt, called before the attempt is validated.
    public var taskDidComplete: (@Sendable (any SessionTask, _ error: TransferError?) -> Void)? {
        get { state.withLock { $0.didComplete } }
        set { state.withLock { $0.didComplete = newValue } }
    }

    /// Resolves a challenge. A closure decides first, if there is one. Otherwise server trust is left to the host's
    /// trust policy. For credentials, a second failure rejects the protection space. Otherwise the request's own
    /// credential is used, and then a stored one.
    func answer(
        _ challenge: AuthenticationChallenge, of task: any SessionTask
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
        let action = state.withLock { $0.life.start() }
        if action == .resume { synchronizeTaskState() }
        return action
    }

    var isStarted: Bool { state.withLock { $0.life.isStarted } }

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
    /// - Returns: whether the request still wants an attempt.
    func countRetry() -> Bool { state.withLock { $0.life.retry() } }

    /// Records the task of a new attempt.
    ///
    /// - Returns: whether the request still wants an attempt.
    func begin(_ task: any SessionTask) -> Bool {
        state.withLock { state in
            guard state.life.beginAttempt() else { return false }
            state.task = task
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

    /// Records the end of an attempt. Takes over the results of the task first, then calls ``taskDidComplete``.
    func finish(_ task: any SessionTask, _ error: TransferError?) {
        let closure = state.withLock { state in
            state.metrics.exchanges += task.metrics.exchanges
            return state.didComplete
        }
        closure?(task, error)
    }

    /// Completes the request, unless it is complete already.
    ///
    /// - Parameter before: called before the end is announced, and only if the request was not complete. It returns a
    ///   closure to call when the present handlers have run.
    func complete(error: TransferError?, before: () -> (@Sendable () -> Void)? = { nil }) {
        let isFirst = state.withLock { state in
            guard state.life.complete() else { return false }
            state.error = error
            // The pending delay must not keep the request alive for the rest of its time.
            state.delay = nil
            return true
        }
        if isFirst {
            let after = before()
            didEnd(error)
            queue.open(whenDone: after)
        }
    }

    /// Called when the request is complete, just before its handlers run.
    func didEnd(_ error: TransferError?) {}
}

/// The state of a request, over all its attempts.
struct RequestLife {
    private(set) var isStarted = false
    private(set) var isSuspended = false
    private(set) var isCancelled = false
    private(set) var isComplete = false
    private(set) var retryCount = 0
    /// Whether the next attempt is certain and waits for its time.
    var isWaiting = false
    /// Whether an attempt has a task, which then has to be ended when the request is cancelled.
    private(set) var isUnderWay = false

    enum Start { case begin, resume, nothing }
    enum Cancellation { case complete, endAttempt, nothing }

    mutating func start() -> Start {
        guard !isCancelled, !isComplete else { return .nothing }
        defer {
            isStarted = true
            isSuspended = false
        }
        if !isStarted { return .begin }
        return isSuspended ? .resume : .nothing
    }

    /// - Returns: whether a task may have to be suspended.
    mutating func suspend() -> Bool {
        guard isStarted, !isCancelled, !isComplete, !isSuspended else { return false }
        isSuspended = true
        return true
    }

    mutating func retry() -> Bool {
        isWaiting = false
        guard !isCancelled, !isComplete else { return false }
        retryCount += 1
        return true
    }

    mutating func beginAttempt() -> Bool {
        guard !isCancelled, !isComplete else { return false }
        isUnderWay = true
        return true
    }

    mutating func endAttempt() { isUnderWay = false }

    mutating func cancel() -> Cancellation {
        guard !isCancelled, !isComplete else { return .nothing }
        isCancelled = true
        return isUnderWay ? .endAttempt : .complete
    }

    mutating func complete() -> Bool {
        defer { isComplete = true }
        return !isComplete
    }
}
