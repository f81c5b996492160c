import Logging
import TaskModel

/// The log entry about a command, or another change from outside, on one task or several.
///
/// An entry covers all tasks of a commit and lists the ids of the first ones.
struct CommandLog {
    /// The maximum number of tasks that an entry lists. The journal takes entries of at most 1,024 fields.
    static let listed = 256

    let kind: TaskLogKind
    /// The change of the tasks, as a past participle.
    let deed: String
    /// The number of tasks.
    let count: Int
    /// The ids of the first tasks, in ascending order.
    let ids: [TaskID]
    /// The uid of the user who gave the command; `nil` for the daemon itself.
    var caller: UInt32?
    /// The uid of the tasks' owner; `nil` where it may be several.
    var owner: UInt32?
    var batch: String?

    init(_ kind: TaskLogKind, _ deed: String, _ ids: some Collection<TaskID>) {
        self.kind = kind
        self.deed = deed
        count = ids.count
        self.ids = Array(ids.sorted().prefix(Self.listed))
    }

    init(_ kind: TaskLogKind, _ deed: String, ranges: [ClosedRange<Int64>]) {
        self.kind = kind
        self.deed = deed
        count = ranges.reduce(0) { $0 + $1.count }
        ids = ranges.lazy.joined().prefix(Self.listed).map { TaskID($0) }
    }

    /// Returns the command with the user who gave it.
    func by(_ caller: Caller) -> CommandLog {
        var command = self
        command.caller = caller.uid
        command.owner = caller.scope
        return command
    }

    /// Returns the entry; `nil` where no task was changed.
    func entry(_ level: Logger.Level = .info) -> TaskLogEntry? {
        guard count > 0 else { return nil }
        let group = batch.map { " of batch \($0)" } ?? ""
        let user = caller.map { " by uid \($0)" } ?? ""
        var entry = TaskLogEntry(kind, level, "\(tasks)\(group) \(deed)\(user)")
        setTasks(&entry)
        entry.set(.batch, batch)
        entry.set(.owner, owner)
        entry.set("caller", caller)
        return entry
    }

    /// Returns the entry about tasks that failed because a task that they depend on did not complete.
    static func failed(_ ids: [TaskID], _ failure: TaskFailure) -> TaskLogEntry? {
        let command = CommandLog(.failed, "failed", ids)
        guard command.count > 0 else { return nil }
        let advice = FailureAdvice.text(
            for: failure.code, task: command.count == 1 ? ids.map(\.description).joined() : "ID")
        var entry = TaskLogEntry(
            .failed, .warning, "\(command.tasks) failed: \(failure.message) (\(failure.code)); \(advice)")
        command.setTasks(&entry)
        entry.set("error", failure.code.rawValue)
        return entry
    }

    private var tasks: String { count == 1 ? ids.first.map { "task \($0)" } ?? "1 task" : "\(count) tasks" }

    private func setTasks(_ entry: inout TaskLogEntry) {
        if count == 1 { return entry.set(.task, ids.first) }
        entry.metadata[TaskLogKey.task.rawValue] = .array(ids.map { .string($0.description) })
        entry.set("count", count)
    }
}
