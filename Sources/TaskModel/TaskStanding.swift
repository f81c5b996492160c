/// A task's state with its reason, and the one place that says which change is legal.
///
/// A value without I/O: events go in, the new standing or an ``IllegalTransition`` comes out.
public struct TaskStanding: Sendable, Equatable {
    public private(set) var state: TaskState
    /// The cause of `waiting` or `paused`; `nil` in every other state.
    public private(set) var reason: TaskReason?
    /// The moment at which a waiting task becomes ready.
    public private(set) var notBefore: Milliseconds?

    /// A task as it enters the queue.
    ///
    /// - Parameter follows: another task is to complete first.
    public init(paused: Bool = false, follows: Bool = false, startAt: Milliseconds? = nil, now: Milliseconds = 0) {
        state = .queued
        if paused {
            state = .paused
            reason = .user
        } else if follows {
            state = .waiting
            reason = .dependency
        } else if let startAt, startAt > now {
            state = .waiting
            reason = .scheduled
            notBefore = startAt
        }
    }

    /// A standing as it was stored.
    ///
    /// - Returns: `nil` for a combination that the machine below never makes.
    public init?(state: TaskState, reason: TaskReason?, notBefore: Milliseconds?) {
        switch state {
        case .active: return nil
        case .queued, .completed, .failed, .cancelled: guard reason == nil else { return nil }
        case .waiting: guard let reason, reason.isOfWaiting else { return nil }
        case .paused: guard let reason, reason.isOfPausing else { return nil }
        }
        self.state = state
        self.reason = reason
        self.notBefore = state == .waiting ? notBefore : nil
    }

    /// What may happen to a task.
    public enum Event: Sendable, Equatable {
        // The scheduler's.
        case start
        case succeed
        case fail
        /// Waits: for the reason `retry`, `scheduled`, `network`, `disk-full`, `disk`, `quota` or `dependency`.
        case park(TaskReason, until: Milliseconds?)
        /// Needs a person: for the reason `auth`, `url-expired` or `source-changed`.
        case block(TaskReason)
        /// The time to wait is over, or the daemon ends while the task runs.
        case release
        /// The task that it was to follow ended without having completed, or is gone.
        case abandon
        // A person's.
        case pause, resume, cancel, retry
        /// A change to what is asked for; where the task stands does not by that alone, see ``updated(by:now:)``.
        case update
    }

    /// Moves to where `event` leads.
    ///
    /// - Returns: whether anything changed; asking for what already is changes nothing and is no error.
    /// - Throws: ``IllegalTransition`` where `event` cannot happen in this state.
    @discardableResult
    public mutating func apply(_ event: Event) throws(IllegalTransition) -> Bool {
        switch (event, state) {
        case (.start, .queued), (.start, .waiting): set(.active)
        case (.succeed, .active): set(.completed)
        case (.fail, .active): set(.failed)
        case (.park(let reason, let until), .active) where reason.isOfWaiting: set(.waiting, reason, until)
        case (.block(let reason), .active) where reason.needsPerson: set(.paused, reason)
        case (.release, .active), (.release, .waiting): set(.queued)
        case (.abandon, .waiting) where reason == .dependency: set(.failed)

        case (.pause, .queued), (.pause, .waiting), (.pause, .active): set(.paused, .user)
        // Who pauses what waits for a person's help does not want it to go on with that help.
        case (.pause, .paused) where reason != .user: set(.paused, .user)
        case (.pause, .paused): return false
        case (.resume, .paused), (.resume, .waiting): set(.queued)
        case (.resume, .queued), (.resume, .active): return false
        case (.cancel, .queued), (.cancel, .waiting), (.cancel, .paused), (.cancel, .active): set(.cancelled)
        case (.cancel, .cancelled): return false
        case (.retry, .failed), (.retry, .cancelled): set(.queued)
        case (.retry, .queued), (.retry, .active): return false
        case (.update, .queued), (.update, .waiting), (.update, .paused), (.update, .active), (.update, .failed):
            return false
        default: throw IllegalTransition(event: event, state: state)
        }
        return true
    }

    private mutating func set(_ state: TaskState, _ reason: TaskReason? = nil, _ notBefore: Milliseconds? = nil) {
        self.state = state
        self.reason = reason
        self.notBefore = notBefore
    }
}

/// An event that cannot happen to a task in its state.
public struct IllegalTransition: Error, Sendable, Equatable, CustomStringConvertible {
    public let event: TaskStanding.Event
    public let state: TaskState

    public var description: String {
        switch event {
        case .pause: "is \(state.rawValue); only a task that has not ended can be paused"
        case .resume: "is \(state.rawValue); only a paused or waiting task can be resumed (see retry)"
        case .cancel: "is \(state.rawValue); only a task that has not ended can be cancelled"
        case .retry: "is \(state.rawValue); only a failed or cancelled task can be retried"
        case .update where state == .cancelled:
            "is cancelled; take it back into the queue first (see retry), then it can be changed"
        case .update: "is \(state.rawValue); nothing of it can be changed any more"
        default: "cannot \(event) while \(state.rawValue)"
        }
    }
}

extension TaskReason {
    var isOfWaiting: Bool {
        switch self {
        case .retry, .scheduled, .network, .diskFull, .disk, .quota, .dependency: true
        default: false
        }
    }

    var isOfPausing: Bool { self == .user || needsPerson }
}
