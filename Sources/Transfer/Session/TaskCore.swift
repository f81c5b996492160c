import Synchronization

/// What tasks of all kinds have in common.
final class TaskCore: Sendable {
    let identifier: Int
    let originalRequest: TransferRequest
    let progress: TransferProgress

    private struct State {
        var state = SessionTaskState.suspended
        var currentRequest: TransferRequest
        var response: ResponseHead?
    }

    private let mutable: Mutex<State>
    private static let lastIdentifier = Atomic<Int>(0)

    init(_ request: TransferRequest, progress: TransferProgress) {
        identifier = Self.lastIdentifier.wrappingAdd(1, ordering: .relaxed).newValue
        originalRequest = request
        self.progress = progress
        mutable = Mutex(State(currentRequest: request))
    }

    var state: SessionTaskState { mutable.withLock { $0.state } }
    var currentRequest: TransferRequest { mutable.withLock { $0.currentRequest } }
    var response: ResponseHead? { mutable.withLock { $0.response } }

    func setCurrentRequest(_ request: TransferRequest) { mutable.withLock { $0.currentRequest = request } }
    func setResponse(_ head: ResponseHead) { mutable.withLock { $0.response = head } }

    /// What a task's driver has to do for an event.
    enum Action {
        case start
        /// It never ran: complete it here and now.
        case completeCancelled
        /// It runs: its loop ends it.
        case cancelOnLoop
        case nothing
    }

    func resume() -> Action {
        mutable.withLock { mutable in
            guard mutable.state == .suspended else { return .nothing }
            mutable.state = .running
            return .start
        }
    }

    func cancel() -> Action {
        mutable.withLock { mutable in
            switch mutable.state {
            case .suspended:
                mutable.state = .canceling
                return .completeCancelled
            case .running:
                mutable.state = .canceling
                return .cancelOnLoop
            case .canceling, .completed: return .nothing
            }
        }
    }

    /// - Returns: whether this was the first to say so.
    func complete() -> Bool {
        mutable.withLock { mutable in
            guard mutable.state != .completed else { return false }
            mutable.state = .completed
            return true
        }
    }
}
