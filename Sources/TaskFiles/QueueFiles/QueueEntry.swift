package import TaskModel

/// A task described in a file, with its position in the file.
package struct QueueEntry: Sendable, Equatable {
    /// The task, validated by ``TaskSpecification/check()``.
    package var specification: TaskSpecification
    /// The line number, from 1.
    package var line: Int
    /// The column in characters, from 1.
    package var column: Int

    package init(_ specification: TaskSpecification, line: Int, column: Int) {
        self.specification = specification
        self.line = line
        self.column = column
    }

    /// The criterion by which two entries of one file are the same task.
    package enum Identity: Hashable {
        case key(String)
        case task(TaskKind, url: String, output: String?)
    }

    package var identity: Identity {
        if let key = specification.key { return .key(key) }
        return .task(specification.kind, url: specification.url, output: specification.output)
    }
}
