import Synchronization

/// Receives what concerns one request, over all its attempts.
///
/// `@unchecked`, since a class with subclasses cannot be checked: every stored property here and in the subclasses is
/// a `let` of a `Sendable` type.
public class TaskDelegate: @unchecked Sendable {
    private struct State {
        var life = RequestLife()
        var task: (any SessionTask)?
        var error: TransferError?
        var credential: Credential?
        var metrics = TransferMetrics()
        /// Adapts, asks the retrier or waits, between two attempts or before the first.
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
    /// Operations that start only once the request is complete, in order.
    let queue = HandlerList()

    init() {}

    /// The task of the current attempt.
    public var task: (any SessionTask)? { state.withLock { $0.task } }
    /// Why the request failed; the first reason is kept.
    public var error: TransferError? { state.withLock { $0.error } }
    /// Attempts after the first.
    public var retryCount: Int { state.withLock { $0.life.retryCount } }
    /// Whether the request was cancelled, which is not to say that it did not complete before.
    public var isCancelled: Bool { state.withLock { $0.life.isCancelled } }
    /// The request's handlers may run: nothing more becomes of it.
    public var isComplete: Bool { state.withLock { $0.life.isComplete } }
    /// For challenges; before any that is stored.
    public var credential: Credential? {
        get { state.withLock { $0.credential } }
        set { state.withLock { $0.credential = newValue } }
    }
    /// Of all attempts that have ended.
    public var metrics: TransferMetrics { state.withLock { $0.metrics } }
    /// Microseconds from the beginning of the last exchange to its answer's first byte.
    public var initialResponseTime: Int64? { metrics.last?.timeline.firstByte }

    // MARK: Closures, where the session's delegate has none

    /// What to ask next in the place of `newRequest`; `nil`: the redirecting answer is the final one.
    public var taskWillPerformHTTPRedirection:
        (@Sendable (any SessionTask, _ response: ResponseHead, _ newRequest: TransferRequest) -> TransferRequest?)?
    {
        get { state.withLock { $0.willPerformHTTPRedirection } }
        set { state.withLock { $0.willPerformHTTPRedirection = newValue } }
    }

    /// What to do about a challenge, in the place of the request's own or a stored credential.
    public var taskDidReceiveChallenge:
        (@Sendable (any SessionTask, AuthenticationChallenge) -> (ChallengeDisposition, Credential?))?
    {
        get { state.withLock { $0.didReceiveChallenge } }
        set { state.withLock { $0.didReceiveChallenge = newValue } }
    }

    /// A stream of the same length for a body that has to be sent again; `nil`: the body's own is made anew.
    public var taskNeedNewBodyStream: (@Sendable (any SessionTask) -> BodyStream?)? {
        get { state.withLock { $0.needNewBodyStream } }
        set { state.withLock { $0.needNewBodyStream = newValue } }
    }

    /// Called at the end of each attempt, before it is validated.
    public var taskDidComplete: (@Sendable (any SessionTask, _ error: TransferError?) -> Void)? {
        get { state.withLock { $0.didComplete } }
        set { state.withLock { $0.didComplete = newValue } }
    }

    /// What to do about a challenge: the closure's answer where there is one. Otherwise a server's trust is the host's
    /// policy's to judge; and a second failure rejects the protection space, else the request's own credential is used,
    /// else a stored one.
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

    // MARK: The request's life

    /// - Returns: whether this was the first to start the request; otherwise it goes on where it stood still.
    func start() -> RequestLife.Start {
        let action = state.withLock { $0.life.start() }
        if action == .goOn { keepInStep() }
        return action
    }

    var isStarted: Bool { state.withLock { $0.life.isStarted } }

    /// - Returns: whether it went on until now.
    func suspend() -> Bool {
        let stops = state.withLock { $0.life.suspend() }
        if stops { keepInStep() }
        return stops
    }

    /// Has the attempt's task stand still or go on, as the request does.
    ///
    /// Of two threads that tell the request different things, the one that was heard first may come to the task last:
    /// so each looks again when it has spoken.
    func keepInStep() {
        var now = state.withLock { ($0.task, $0.life.isSuspended) }
        while let task = now.0 {
            let isSuspended = now.1
            if isSuspended { task.suspend() } else { task.resume() }
            now = state.withLock { ($0.task, $0.life.isSuspended) }
            if now.0 === task, now.1 == isSuspended { return }
        }
    }

    /// Another attempt is about to begin.
    ///
    /// - Returns: whether the request still wants one.
    func countRetry() -> Bool { state.withLock { $0.life.retry() } }

    /// A new attempt has its task.
    ///
    /// - Returns: whether the request still wants one.
    func begin(_ task: any SessionTask) -> Bool {
        state.withLock { state in
            guard state.life.beginAttempt() else { return false }
            state.task = task
            return true
        }
    }

    /// It stands still: a task that begins waits.
    var isSuspended: Bool { state.withLock { $0.life.isSuspended } }

    func replace(by task: any SessionTask) { state.withLock { $0.task = task } }

    /// - Returns: `.complete` where no attempt is under way that could end by itself.
    func cancel(_ end: (any SessionTask) -> Void = { $0.cancel() }) -> RequestLife.Cancellation {
        let (action, task, delay) = state.withLock { state in
            defer { state.delay = nil }
            return (state.life.cancel(), state.task, state.delay)
        }
        delay?.cancel()
        if case .endAttempt = action, let task { end(task) }
        return action
    }

    /// What lies before the next attempt is done in `delay`; cancelling the request cuts that short.
    ///
    /// - Parameter delay: must not run on this thread before it is returned.
    func wait(in delay: () -> Task<Void, Never>) {
        state.withLock { state in
            // Whoever cancelled it completes it too.
            guard !state.life.isCancelled, !state.life.isComplete else { return }
            // Made within the lock: it may be at its end before anyone could keep it.
            state.delay = delay()
            state.waits += 1
        }
    }

    /// How often ``wait(in:)`` had something to wait for.
    var waits: Int { state.withLock { $0.waits } }

    /// As ``wait(in:)``, for one that may have ended already.
    ///
    /// - Parameter waits: from before it began: where there are more by now, it has been followed by another wait, which
    ///   is the one to cut short.
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

    /// The next attempt is sure, and waits for its time.
    func setWaiting() { state.withLock { $0.life.isWaiting = true } }

    /// - Returns: whether an attempt waited, which begins now.
    func endWaiting() -> Bool {
        let delay = state.withLock { state -> Task<Void, Never>? in
            guard state.life.isWaiting, !state.life.isCancelled else { return nil }
            state.life.isWaiting = false
            return state.delay
        }
        delay?.cancel()
        return delay != nil
    }

    /// The attempt's task is complete: what happens to the request now, no task hears of.
    func endAttempt() { state.withLock { $0.life.endAttempt() } }

    // MARK: From the session

    /// An attempt has ended; what its task has is taken over before anything else becomes of that.
    func finish(_ task: any SessionTask, _ error: TransferError?) {
        let closure = state.withLock { state in
            state.metrics.exchanges += task.metrics.exchanges
            return state.didComplete
        }
        closure?(task, error)
    }

    /// - Parameter before: called before anyone hears of the end, and not where the request was complete already; says
    ///   what to do when the handlers that are there have run.
    func complete(error: TransferError?, before: () -> (@Sendable () -> Void)? = { nil }) {
        let isFirst = state.withLock { state in
            guard state.life.complete() else { return false }
            state.error = error
            // What waited must not hold the request for the rest of its time.
            state.delay = nil
            return true
        }
        if isFirst {
            let after = before()
            didEnd(error)
            queue.open(whenDone: after)
        }
    }

    /// The request is complete; its handlers are about to run.
    func didEnd(_ error: TransferError?) {}
}

/// The states of a request, over all its attempts.
struct RequestLife {
    private(set) var isStarted = false
    private(set) var isSuspended = false
    private(set) var isCancelled = false
    private(set) var isComplete = false
    private(set) var retryCount = 0
    /// Another attempt is sure, and waits for its time.
    var isWaiting = false
    /// An attempt has its task: what happens now happens to that.
    private(set) var isUnderWay = false

    enum Start { case begin, goOn, nothing }
    enum Cancellation { case complete, endAttempt, nothing }

    mutating func start() -> Start {
        guard !isCancelled, !isComplete else { return .nothing }
        defer {
            isStarted = true
            isSuspended = false
        }
        if !isStarted { return .begin }
        return isSuspended ? .goOn : .nothing
    }

    /// - Returns: whether a task may have to stand still.
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
