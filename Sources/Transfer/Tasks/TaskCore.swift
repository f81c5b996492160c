import Synchronization

/// What tasks of all kinds have in common.
final class TaskCore: Sendable {
    let identifier: Int
    let originalRequest: TransferRequest
    let progress: TransferProgress
    /// Tells which of the session's loops it runs on.
    let home: Int

    private struct State {
        var life = TaskLife()
        var currentRequest: TransferRequest
        var response: ResponseHead?
        var priority = 0.5
        var metrics = TransferMetrics()
        var error: TransferError?
    }

    private let mutable: Mutex<State>
    /// Its loop's, where that is one of ``RemoteLoops``.
    private let lease: Mutex<LoopLease?>
    /// Bytes a second; 0: any number. Read for every piece of a body.
    private let rate: Atomic<Int64>
    private static let lastIdentifier = Atomic<Int>(0)

    /// - Parameter predecessor: goes over into this one, on its loop.
    init(_ request: TransferRequest, progress: TransferProgress, succeeding predecessor: TaskCore? = nil) {
        identifier = Self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
        home = predecessor?.home ?? identifier
        originalRequest = request
        rate = Atomic(request.maximumRate.map { max(1, $0) } ?? 0)
        self.progress = progress
        var state = predecessor?.mutable.withLock { $0 } ?? State(currentRequest: request)
        state.life = TaskLife()
        mutable = Mutex(state)
        lease = Mutex(predecessor?.lease.withLock { $0 })
    }

    /// The hold on its loop, which it keeps from the first time on.
    func lease(_ make: () -> LoopLease) -> LoopLease {
        lease.withLock { lease in
            let taken = lease ?? make()
            lease = taken
            return taken
        }
    }

    var state: SessionTaskState { mutable.withLock { $0.life.state } }
    var currentRequest: TransferRequest { mutable.withLock { $0.currentRequest } }
    var response: ResponseHead? { mutable.withLock { $0.response } }
    var metrics: TransferMetrics { mutable.withLock { $0.metrics } }
    var error: TransferError? { mutable.withLock { $0.error } }
    var priority: Double {
        get { mutable.withLock { $0.priority } }
        set { mutable.withLock { $0.priority = min(1, max(0, newValue)) } }
    }

    /// Bytes a second; `nil`: any number.
    var maximumRate: Int64? {
        get {
            let rate = rate.load(ordering: .relaxed)
            return rate == 0 ? nil : rate
        }
        set { rate.store(newValue.map { max(1, $0) } ?? 0, ordering: .relaxed) }
    }

    func setCurrentRequest(_ request: TransferRequest) { mutable.withLock { $0.currentRequest = request } }
    func setResponse(_ head: ResponseHead) { mutable.withLock { $0.response = head } }
    func add(_ metrics: ExchangeMetrics) { mutable.withLock { $0.metrics.exchanges.append(metrics) } }

    func resume() -> TaskLife.Resumption { mutable.withLock { $0.life.resume() } }
    func suspend() -> Bool { mutable.withLock { $0.life.suspend() } }
    func cancel() -> TaskLife.Cancellation { mutable.withLock { $0.life.cancel() } }

    /// Its successor goes on in its place.
    ///
    /// - Returns: `false` where it is at its end: what cancelled it would not reach the successor.
    func handOver(to successor: TaskCore) -> Bool {
        let life = mutable.withLock { mutable -> TaskLife? in
            guard mutable.life.state == .running || mutable.life.state == .suspended else { return nil }
            defer { _ = mutable.life.complete() }
            return mutable.life
        }
        guard let life else { return false }
        // It is at work already: one that had yet to begin would be started anew, and cancelled without its loop.
        successor.mutable.withLock { $0.life = life }
        return true
    }

    /// - Returns: whether this was the first to say so.
    func complete(_ error: TransferError?) -> Bool {
        mutable.withLock { mutable in
            guard mutable.life.complete() else { return false }
            mutable.error = error
            return true
        }
    }
}

/// The states of a task, and what its driver has to do for each event.
struct TaskLife {
    private(set) var state = SessionTaskState.suspended
    /// It has been handed to a loop.
    private var isStarted = false

    enum Resumption { case start, goOn, nothing }

    enum Cancellation {
        /// It never ran: complete it here and now.
        case complete
        /// It runs: its loop ends it.
        case cancelOnLoop
        case nothing
    }

    mutating func resume() -> Resumption {
        guard state == .suspended else { return .nothing }
        state = .running
        defer { isStarted = true }
        return isStarted ? .goOn : .start
    }

    /// - Returns: whether its loop has to stop it.
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
