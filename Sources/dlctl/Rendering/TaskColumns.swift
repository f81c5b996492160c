import TaskModel

/// The columns of a table of tasks.
struct TaskColumns {
    /// Whether the table shows the owners' names.
    var showsOwner = false
    /// Whether the table shows the order of the queue: places, priorities and batches instead of transfers.
    var showsQueue = false

    static let all = TaskColumns().columns

    var columns: [Table.Column] {
        let owner = showsOwner ? [Table.Column(title: "OWNER", minimum: 8, omission: showsQueue ? 2 : 4)] : []
        let name = Table.Column(title: "NAME", minimum: 16, isCutInMiddle: true)
        if showsQueue {
            return [
                Table.Column(title: "#", alignsRight: true), Table.Column(title: "ID", alignsRight: true),
                Table.Column(title: "PRIORITY", omission: 3),
            ] + owner + [
                Table.Column(title: "BATCH", minimum: 8, isCutInMiddle: true, omission: 1),
                Table.Column(title: "STATE", minimum: 14), name,
            ]
        }
        return [
            Table.Column(title: "ID", alignsRight: true), Table.Column(title: "STATE", minimum: 14),
            Table.Column(title: "SIZE", alignsRight: true, omission: 3),
            Table.Column(title: "RATE", alignsRight: true, omission: 1),
            Table.Column(title: "LEFT", alignsRight: true, omission: 2),
        ] + owner + [name]
    }

    /// Returns the row of a task.
    ///
    /// - Parameter place: the place in the queue, from 1.
    func row(_ task: TaskStatus, place: Int = 0, now: Milliseconds) -> [String] {
        let owner = showsOwner ? [Accounts.name(task.owner)] : []
        let name = (task.kind == .upload ? "↑ " : "") + Escape.visible(task.name ?? LongURL.shortened(task.url))
        let state = Escape.visible(Describe.state(task, now: now))
        if showsQueue {
            return ["\(place)", task.id.description, task.priority.rawValue] + owner
                + [task.batch.map(Escape.visible) ?? "-", state, name]
        }
        let isActive = task.state == .active
        return [
            task.id.description, state,
            task.bytesTotal.map { ByteSize.describe($0) }
                ?? (task.bytesDone > 0 ? ByteSize.describe(task.bytesDone) : "-"),
            isActive ? task.rate.map { Describe.rate($0) } ?? "-" : "-",
            isActive ? task.eta.map { Describe.clock(seconds: $0) } ?? "-" : "-",
        ] + owner + [name]
    }

    static func row(_ task: TaskStatus, now: Milliseconds) -> [String] { TaskColumns().row(task, now: now) }
}
