import Curl
import Synchronization

/// The state that tasks of all kinds have in common.
final class TaskCore: Sendable {
    let identifier: Int
    let originalRequest: TransferRequest
    let progress: TransferProgress
    /// The run of the task, on its loop's thread.
    let run = LoopConfined<any LoopRun>()

    private struct State {
        var life = TaskLife()
        var currentRequest: TransferRequest
        var response: ResponseHead?
        var sentCredential: SentCredential?
        var priority = 0.5
        var metrics = TransferMetrics()
        var error: TransferError?
    }

    private let mutable: Mutex<State>
    private let assignedLoop: Mutex<AssignedLoop?>
    /// The rate limit in bytes per second; 0 means no limit. Read for every piece of a body.
    private let rate: Atomic<Int64>
    /// The number of bytes of the request's body sent by the last exchange.
    private let sentBody = Atomic<Int64>(0)
    private static let lastIdentifier = Atomic<Int>(0)

    /// - Parameter predecessor: a task that this one continues, on the same event loop.
    init(_ request: TransferRequest, progress: TransferProgress, succeeding predecessor: TaskCore? = nil) {
        identifier = Self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
        originalRequest = request
        rate = Atomic(request.maximumRate.map { max(1, $0) } ?? 0)
        self.progress = progress
        var state = predecessor?.mutable.withLock { $0 } ?? State(currentRequest: request)
        state.life = TaskLife()
        mutable = Mutex(state)
        assignedLoop = Mutex(predecessor?.loop)
    }

    /// The task's event loop; `nil` before the task runs.
    var loop: AssignedLoop? { assignedLoop.withLock { $0 } }

    func setLoop(_ loop: AssignedLoop) { assignedLoop.withLock { $0 = loop } }

    var state: SessionTaskState { mutable.withLock { $0.life.state } }
    var currentRequest: TransferRequest { mutable.withLock { $0.currentRequest } }
    var response: ResponseHead? { mutable.withLock { $0.response } }
    /// The kind of credential that was sent, if ``response`` rejects it.
    var sentCredential: SentCredential? { mutable.withLock { $0.sentCredential } }
    var metrics: TransferMetrics { mutable.withLock { $0.metrics } }
    var error: TransferError? { mutable.withLock { $0.error } }
    var priority: Double {
        get { mutable.withLock { $0.priority } }
        set { mutable.withLock { $0.priority = min(1, max(0, newValue)) } }
    }

    /// The rate limit in bytes per second; `nil` means no limit.
    var maximumRate: Int64? {
        get {
            let rate = rate.load(ordering: .relaxed)
            return rate == 0 ? nil : rate
        }
        set { rate.store(newValue.map { max(1, $0) } ?? 0, ordering: .relaxed) }
    }

    /// The number of bytes of the request's body sent by the last exchange.
    var sentBodyBytes: Int64 { sentBody.load(ordering: .relaxed) }

    func bodySent(_ bytes: Int64) { sentBody.store(bytes, ordering: .relaxed) }

    func setCurrentRequest(_ request: TransferRequest) { mutable.withLock { $0.currentRequest = request } }
    func setResponse(_ head: ResponseHead, to credential: SentCredential? = nil) {
        mutable.withLock { ($0.response, $0.sentCredential) = (head, credential) }
    }
    func add(_ metrics: ExchangeMetrics) { mutable.withLock { $0.metrics.add(metrics) } }

    func resume() -> TaskLife.Resumption { mutable.withLock { $0.life.resume() } }
    func suspend() -> Bool { mutable.withLock { $0.life.suspend() } }
    func cancel() -> TaskLife.Cancellation { mutable.withLock { $0.life.cancel() } }

    /// Passes the state of the task to its successor, and completes it.
    ///
    /// - Returns: `false` if the task was cancelled or is complete: a cancellation would not reach the successor.
    func passState(to successor: TaskCore) -> Bool {
        let life = mutable.withLock { mutable -> TaskLife? in
            guard mutable.life.state == .running || mutable.life.state == .suspended else { return nil }
            defer { _ = mutable.life.complete() }
            return mutable.life
        }
        guard let life else { return false }
        // The successor takes over the started state. Otherwise it would be started again, and a cancel would complete
        // it without its loop.
        successor.mutable.withLock { $0.life = life }
        return true
    }

    /// - Returns: whether this was the first call.
    func complete(_ error: TransferError?) -> Bool {
        mutable.withLock { mutable in
            guard mutable.life.complete() else { return false }
            mutable.error = error
            return true
        }
    }
}

/// The states of a task, and the reaction that each event requires.
struct TaskLife {
    private(set) var state = SessionTaskState.suspended
    /// Whether the task was given to a loop.
    private var isStarted = false

    enum Resumption { case start, resume, nothing }

    enum Cancellation {
        /// The task never ran: complete it directly.
        case complete
        /// The task is running: its loop has to end it.
        case cancelOnLoop
        case nothing
    }

    mutating func resume() -> Resumption {
        guard state == .suspended else { return .nothing }
        state = .running
        defer { isStarted = true }
        return isStarted ? .resume : .start
    }

    /// - Returns: whether its loop has to suspend it.
    mutating func suspend() -> Bool {
        guard state == .running else { return false }
        state = .suspended
        return true
    }

    mutating func cancel() -> Cancellation {
        switch state {
        case .suspended, .running:
            state = .canceling
            return isStarted ? .cancelOnLoop : .complete
        case .canceling, .completed: return .nothing
        }
    }

    /// - Returns: whether it was not complete before.
    mutating func complete() -> Bool {
        defer { state = .completed }
        return state != .completed
    }
}
