import Curl

/// An attempt of a session at a request.
public protocol SessionTask: AnyObject, Sendable {
    /// The task's number, unique within the process.
    var identifier: Int { get }
    /// The state; initially ``SessionTaskState/suspended``.
    var state: SessionTaskState { get }
    /// The request as it was given to the session.
    var originalRequest: TransferRequest { get }
    /// The request that is being sent now, after redirects.
    var currentRequest: TransferRequest { get }
    /// The head of the final response; while the task runs, of the last response that was accepted.
    var response: ResponseHead? { get }
    /// The counts of the request, over all its tasks.
    var progress: TransferProgress { get }
    /// The priority among the tasks that wait for a connection to the same host, from 0 to 1. The highest goes first.
    var priority: Double { get set }
    /// The rate limit in bytes per second, within what the session allows; initially the request's
    /// ``TransferRequest/maximumRate``. A change takes effect within half a second. `nil` means no limit.
    var maximumRate: Int64? { get set }
    /// The metrics of each exchange, once the task is complete.
    var metrics: TransferMetrics { get }
    /// The reason why the task failed; `nil` before the end and after success.
    var error: TransferError? { get }
    /// Starts the task, or resumes it after ``suspend()``.
    func resume()
    /// Suspends the task: no byte of a body is received or sent until ``resume()``, and no time-out runs.
    func suspend()
    /// Cancels the task, which completes with ``TransferError/Code/cancelled``.
    func cancel()
}

/// The state of a task.
public enum SessionTaskState: Sendable, Equatable {
    /// A task that is suspended or not started yet.
    case suspended
    /// A task that is running, or waiting for a connection to its host.
    case running
    /// A task that was cancelled, and about to complete.
    case canceling
    /// A completed task. The state does not change any more.
    case completed
}

/// A task as its session carries it out.
protocol LoopTask: SessionTask {
    var core: TaskCore { get }
    var session: Session { get }
    /// Creates a run of the task. The scheme of the task's URL selects the kind of the run.
    ///
    /// - Throws: the reason why the task cannot run.
    func makeRun(on core: LoopCore) throws(TransferError) -> any LoopRun
    /// Called when the task is complete, just before its delegate is notified.
    func didEnd(_ error: TransferError?)
}

extension LoopTask {
    func didEnd(_ error: TransferError?) {}

    /// Returns the run of the task; `nil` before its beginning and after its end.
    func run(on core: LoopCore) -> (any LoopRun)? { self.core.run.value(on: core) }

    /// Keeps the run of the task until ``endRun(on:)``.
    func setRun(_ run: any LoopRun, on core: LoopCore) { self.core.run.set(run, on: core) }

    /// Releases the run of the task.
    func endRun(on core: LoopCore) { self.core.run.set(nil, on: core) }

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
        case .resume: session.perform(self) { $0.resume() }
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
