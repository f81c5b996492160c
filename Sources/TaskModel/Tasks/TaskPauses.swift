/// The pauses of a task that a user has paused, each by the width of its selection, and what the task needed before.
///
/// A wide selection, such as all tasks, includes tasks that were paused one by one before. Resuming that selection
/// returns them to their own pause.
public struct TaskPauses: OptionSet, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// A pause of the task itself, by its id or from its beginning.
    public static let single = TaskPauses(rawValue: 1)
    /// A pause of the tasks that match conditions, such as those of a batch.
    public static let matching = TaskPauses(rawValue: 2)
    /// A pause of all tasks.
    public static let all = TaskPauses(rawValue: 4)

    /// The pauses of every width.
    public static let widths: TaskPauses = [.single, .matching, .all]

    private static let needs: [(TaskPauses, TaskReason)] = [
        (TaskPauses(rawValue: 8), .auth), (TaskPauses(rawValue: 16), .urlExpired),
        (TaskPauses(rawValue: 32), .sourceChanged),
    ]

    /// Creates the pause for what a task needs from a person; empty for other reasons.
    public init(need reason: TaskReason?) {
        self = Self.needs.first { $0.1 == reason }?.0 ?? []
    }

    /// The reason for which the task needed a person before a user paused it; `nil` if it needed none.
    public var need: TaskReason? { Self.needs.first { contains($0.0) }?.1 }

    /// Returns the width of a selection by a filter.
    public static func width(of filter: TaskFilter) -> TaskPauses {
        filter.batch == nil && filter.search == nil && filter.since == nil && filter.until == nil
            && (filter.states ?? []).isEmpty ? .all : .matching
    }

    /// Returns the pauses that are left when a selection is resumed: those of narrower selections, unless no other
    /// pause is in force. Resuming a task by its id leaves none.
    public func left(byResuming width: TaskPauses) -> TaskPauses {
        let ended = TaskPauses([.single, .matching, .all].filter { $0.rawValue >= width.rawValue })
        return width == .single || isDisjoint(with: ended) ? [] : subtracting(ended)
    }
}
