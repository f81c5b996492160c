import TaskModel

/// One task that a file asks for, and where it does.
package struct QueueEntry: Sendable, Equatable {
    /// Checked by ``TaskSpecification/check()``.
    package var specification: TaskSpecification
    /// From 1.
    package var line: Int
    /// From 1, in characters.
    package var column: Int

    package init(_ specification: TaskSpecification, line: Int, column: Int) {
        self.specification = specification
        self.line = line
        self.column = column
    }

    /// What makes two entries of one file the same task.
    enum Identity: Hashable {
        case key(String)
        case task(TaskKind, url: String, output: String?)
    }

    var identity: Identity {
        if let key = specification.key { return .key(key) }
        return .task(specification.kind, url: specification.url, output: specification.output)
    }
}
