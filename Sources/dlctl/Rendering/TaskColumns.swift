import TaskModel

/// The columns of a table of tasks.
enum TaskColumns {
    static let all = [
        Table.Column(title: "ID", alignsRight: true), Table.Column(title: "STATE", minimum: 14),
        Table.Column(title: "SIZE", alignsRight: true, omission: 2),
        Table.Column(title: "RATE", alignsRight: true, omission: 1),
        Table.Column(title: "NAME"),
    ]

    /// Returns the row of a task.
    static func row(_ task: TaskStatus, now: Milliseconds) -> [String] {
        [
            task.id.description, Describe.state(task, now: now),
            task.bytesTotal.map { ByteSize.describe($0) }
                ?? (task.bytesDone > 0 ? ByteSize.describe(task.bytesDone) : "-"),
            task.state == .active ? task.rate.map { Describe.rate($0) } ?? "-" : "-",
            (task.kind == .upload ? "↑ " : "") + Escape.visible(task.name ?? task.url),
        ]
    }
}
