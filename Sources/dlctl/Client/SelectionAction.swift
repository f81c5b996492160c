import ControlProtocol
import TaskModel

/// An action that a command applies to the selected tasks.
enum SelectionAction {
    case pause, resume, cancel, retry, remove, set

    var method: MethodName {
        switch self {
        case .pause: .taskPause
        case .resume: .taskResume
        case .cancel: .taskCancel
        case .retry: .taskRetry
        case .remove: .taskRemove
        case .set: .taskUpdate
        }
    }

    var verb: String {
        switch self {
        case .pause: "pause"
        case .resume: "resume"
        case .cancel: "cancel"
        case .retry: "retry"
        case .remove: "remove"
        case .set: "change"
        }
    }

    var participle: String {
        switch self {
        case .pause: "paused"
        case .resume: "resumed"
        case .cancel: "cancelled"
        case .retry: "retried"
        case .remove: "removed"
        case .set: "changed"
        }
    }

    /// The states of the tasks that the action affects, unless the state is named.
    var states: [TaskState] {
        switch self {
        case .pause: [.queued, .active, .waiting]
        case .resume: [.waiting, .paused]
        case .cancel: [.queued, .active, .waiting, .paused]
        case .retry: [.paused, .failed, .cancelled]
        case .remove: TaskState.allCases
        case .set: [.queued, .active, .waiting, .paused, .failed]
        }
    }

    /// The states of the tasks that the action affects where their ids or their state are named.
    var namedStates: [TaskState] { self == .retry ? states + [.completed] : states }

    /// Returns whether the action affects a task in one of its states.
    func affects(_ task: TaskStatus) -> Bool {
        self != .retry || task.state != .paused || task.reason?.needsPerson == true
    }
}
