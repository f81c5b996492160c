import Curl

/// One attempt of a session at one request.
public protocol SessionTask: AnyObject, Sendable {
    /// Unique within the process.
    var identifier: Int { get }
    /// Begins as ``SessionTaskState/suspended``.
    var state: SessionTaskState { get }
    /// As it was given to the session.
    var originalRequest: TransferRequest { get }
    /// After redirects: what is being asked for now.
    var currentRequest: TransferRequest { get }
    /// Of the final answer; while the task runs, of the last one that was worth taking.
    var response: ResponseHead? { get }
    /// Counts of the request, over all its tasks.
    var progress: TransferProgress { get }
    /// Between 0 and 1: which of the tasks that wait for a host's connections goes first.
    var priority: Double { get set }
    /// Bytes a second, within what the session allows; begins as the request's
    /// ``TransferRequest/maximumRate``. A change counts within half a second. `nil`: any number.
    var maximumRate: Int64? { get set }
    /// What each of its exchanges took, once it is complete.
    var metrics: TransferMetrics { get }
    /// Why it ended; `nil` before that, and where it succeeded.
    var error: TransferError? { get }
    /// Starts the task, or lets it go on after ``suspend()``.
    func resume()
    /// Stands still: no byte of a body is taken or sent until ``resume()``, and no timeout runs.
    func suspend()
    /// Ends it; it completes with ``TransferError/Code/cancelled``.
    func cancel()
}

/// Where a task stands.
public enum SessionTaskState: Sendable, Equatable {
    /// Not started yet, or told to stand still.
    case suspended
    /// At work, or waiting for its turn at its host.
    case running
    /// Told to end, and about to.
    case canceling
    /// At its end: nothing more becomes of it.
    case completed
}

/// A task as its session carries it out.
protocol LoopTask: SessionTask {
    var core: TaskCore { get }
    var session: Session { get }
    /// What works for it on a loop's thread.
    func makeRun(on loop: LoopCore) -> any LoopRun
    /// It is complete, and its delegate is about to hear of that.
    func didEnd(_ error: TransferError?)
}

extension LoopTask {
    func didEnd(_ error: TransferError?) {}

    public var identifier: Int { core.identifier }
    public var state: SessionTaskState { core.state }
    public var originalRequest: TransferRequest { core.originalRequest }
    public var currentRequest: TransferRequest { core.currentRequest }
    public var response: ResponseHead? { core.response }
    public var progress: TransferProgress { core.progress }
    public var metrics: TransferMetrics { core.metrics }
    public var error: TransferError? { core.error }
    public var priority: Double {
        get { core.priority }
        set { core.priority = newValue }
    }

    public var maximumRate: Int64? {
        get { core.maximumRate }
        set { core.maximumRate = newValue }
    }

    public func resume() {
        switch core.resume() {
        case .start: session.start(self)
        case .goOn: session.perform(self) { $0.goOn() }
        case .nothing: break
        }
    }

    public func suspend() {
        if core.suspend() { session.perform(self) { $0.suspend() } }
    }

    public func cancel() {
        switch core.cancel() {
        case .complete: session.complete(unstarted: self, .cancelled)
        case .cancelOnLoop: session.cancel(self)
        case .nothing: break
        }
    }
}
