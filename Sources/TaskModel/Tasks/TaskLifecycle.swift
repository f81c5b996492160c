/// A task's state with its reason, and the state machine that defines the legal transitions.
///
/// The type performs no I/O. Applying an event yields the new lifecycle or an ``IllegalTransition``.
public struct TaskLifecycle: Sendable, Equatable {
    public private(set) var state: TaskState
    /// The cause of `waiting` or `paused`; `unchanged` for a task that completed without a transfer; otherwise `nil`.
    public private(set) var reason: TaskReason?
    /// The time at which a waiting task becomes ready.
    public private(set) var notBefore: Milliseconds?

    /// Creates the lifecycle of a new task.
    ///
    /// - Parameter follows: Whether another task must complete first.
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

    /// Restores a stored lifecycle.
    ///
    /// - Returns: `nil` for a combination that the state machine never produces.
    public init?(state: TaskState, reason: TaskReason?, notBefore: Milliseconds?) {
        switch state {
        case .active: return nil
        case .completed: guard reason == nil || reason == .unchanged else { return nil }
        case .queued, .failed, .cancelled: guard reason == nil else { return nil }
        case .waiting: guard let reason, reason.isOfWaiting else { return nil }
        case .paused: guard let reason, reason.isOfPausing else { return nil }
        }
        self.state = state
        self.reason = reason
        self.notBefore = state == .waiting ? notBefore : nil
    }

    /// The events of the state machine.
    public enum Event: Sendable, Equatable {
        // Events from the scheduler.
        case start
        case succeed
        /// The server has no other version of the file that is there.
        case confirm
        case fail
        /// The task waits, with the reason `retry`, `scheduled`, `network`, `disk-full`, `disk`, `quota` or
        /// `dependency`.
        case park(TaskReason, until: Milliseconds?)
        /// The task needs user action, with the reason `auth`, `url-expired` or `source-changed`.
        case block(TaskReason)
        /// The waiting time is over, or the daemon stops while the task runs.
        case release
        /// The task that this one depends on ended without having completed, or was removed.
        case abandon
        // Events from a user. `resume` returns a paused task to what it waited for, and starts one that waits for a
        // retry; `resumeNow` starts every one.
        case pause, resume, resumeNow, cancel, retry
        /// A queue file with a completed task's entry, which asks to fetch the file again if it changed.
        case recheck
        /// A change of the options. It does not change the lifecycle by itself; see ``updated(by:startAt:now:)``.
        case update
    }

    /// Applies an event.
    ///
    /// - Returns: whether anything changed. Requesting the current state changes nothing and is not an error.
    /// - Throws: ``IllegalTransition`` where the event is not allowed in the current state.
    @discardableResult
    public mutating func apply(_ event: Event) throws(IllegalTransition) -> Bool {
        switch (event, state) {
        case (.start, .queued), (.start, .waiting): set(.active)
        case (.succeed, .active): set(.completed)
        case (.confirm, .active): set(.completed, .unchanged)
        case (.recheck, .completed): set(.queued)
        case (.fail, .active): set(.failed)
        case (.park(let reason, let until), .active) where reason.isOfWaiting: set(.waiting, reason, until)
        case (.block(let reason), .active) where reason.needsPerson: set(.paused, reason)
        case (.release, .active), (.release, .waiting): set(.queued)
        case (.abandon, .waiting) where reason == .dependency: set(.failed)

        case (.pause, .queued), (.pause, .waiting), (.pause, .active): set(.paused, .user)
        // A user who pauses a task that needs user action does not want it to continue after that action, so the reason
        // becomes `user`.
        case (.pause, .paused) where reason != .user: set(.paused, .user)
        case (.pause, .paused): return false
        case (.resume, .waiting) where reason == .scheduled || reason == .dependency: return false
        case (.resume, .paused), (.resume, .waiting), (.resumeNow, .paused), (.resumeNow, .waiting): set(.queued)
        case (.resume, .queued), (.resume, .active), (.resumeNow, .queued), (.resumeNow, .active): return false
        case (.cancel, .queued), (.cancel, .waiting), (.cancel, .paused), (.cancel, .active): set(.cancelled)
        case (.cancel, .cancelled): return false
        case (.retry, .failed), (.retry, .cancelled), (.retry, .completed): set(.queued)
        case (.retry, .paused) where reason?.needsPerson == true: set(.queued)
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

/// The error for an event that is not allowed in the task's state.
public struct IllegalTransition: Error, Sendable, Equatable, CustomStringConvertible {
    public let event: TaskLifecycle.Event
    public let state: TaskState

    public var description: String {
        switch event {
        case .pause: "is \(state.rawValue); only a task that has not ended can be paused"
        case .resume, .resumeNow: "is \(state.rawValue); only a paused or waiting task can be resumed (see retry)"
        case .cancel: "is \(state.rawValue); only a task that has not ended can be cancelled (see remove)"
        case .retry: "is \(state.rawValue); only a task that has ended or needs you can be retried (see resume)"
        case .update where state == .cancelled:
            "is cancelled; it can be changed only after a retry"
        case .update: "is \(state.rawValue); it can no longer be changed"
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
