/// Where a task is moved to, among those of its owner with its priority.
public enum TaskPlacement: Sendable, Equatable {
    case first
    case last
    case before(TaskID)
}
