import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// The `--dry-run` option, which lists the tasks that a command would change.
struct DryRun {
    private let action: SelectionAction
    private let calls: [TaskSelectionParameters]

    init(_ action: SelectionAction, _ calls: [TaskSelectionParameters]) {
        self.action = action
        self.calls = calls
    }

    /// Prints a table, or with `--json` an array of tasks, and the number of tasks to standard error.
    func show(_ context: Context) throws {
        let client = try context.connect()
        let width = Terminal.isTerminal(STDOUT_FILENO) ? Terminal.size(STDOUT_FILENO).columns : nil
        var table = Table(TaskColumns.all, width: width)
        var array = TaskArray(context.output)
        var total = 0
        let unknown = try forEachPage(client) { page in
            if context.json {
                array.add(page)
            } else {
                let now = Clock.now()
                for line in table.page(page.map { Self.row($0, now: now) }) { context.output.line(line) }
            }
            total += page.count
        }
        if context.json { array.end() }
        context.output.flush()
        if !context.json {
            context.note("\(Describe.count(total, "task")) would be \(action.participle); nothing was changed")
        }
        for id in unknown { context.report(.unknown(id)) }
        if !unknown.isEmpty { throw ExitStatus.failed }
    }

    /// Returns the row that `list` shows, plus the owner if the task belongs to another user.
    private static func row(_ task: TaskStatus, now: Milliseconds) -> [String] {
        var row = TaskColumns.row(task, now: now)
        if task.owner != getuid(), let name = row.popLast() { row.append("\(name)  (uid \(task.owner))") }
        return row
    }

    /// Calls `body` with the tasks that the command would change.
    ///
    /// - Returns: the ids of unknown tasks.
    private func forEachPage(_ client: ControlClient, _ body: ([TaskStatus]) -> Void) throws -> [TaskID] {
        var unknown: [TaskID] = []
        for call in calls {
            if let filter = call.filter?.limited(to: action) {
                // An empty list of states would mean every state.
                if filter.states?.isEmpty == true { continue }
                try client.forEachPage(filter: filter) { page in
                    body(page.filter(action.affects))
                    return true
                }
            }
            for id in call.ids ?? [] {
                guard let task = try client.taskIfKnown(id) else {
                    unknown.append(id)
                    continue
                }
                if action.namedStates.contains(task.state), action.affects(task) { body([task]) }
            }
        }
        return unknown
    }
}
