/// The target position of a move, among the tasks with the same owner and the same priority.
public enum TaskPlacement: Sendable, Equatable {
    case first
    case last
    case before(TaskID)
}
