import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// A confirmation before a command changes all tasks, tasks of several users, or most of a batch.
///
/// Without a terminal no confirmation is possible, and the command acts on the caller's own tasks only.
struct Confirmation {
    private let action: SelectionAction

    init(_ action: SelectionAction) { self.action = action }

    /// Obtains confirmation for tasks that a filter selects.
    ///
    /// - Parameter isAll: whether `--all` was given.
    /// - Throws: ``Failure`` if the user declines or cannot be asked.
    func obtain(for filter: TaskFilter, isAll: Bool, _ client: ControlClient) throws {
        let filter = filter.limited(to: action)
        // An empty list of states would mean every state.
        if filter.states?.isEmpty == true { return }
        let count = try affected(filter, client)
        let others = count.owners.filter { $0.owner != getuid() }
        guard count.tasks > 0, isAll || !others.isEmpty else { return }
        try obtain(count, others)
    }

    /// Returns the number of tasks that the action affects.
    private func affected(_ filter: TaskFilter, _ client: ControlClient) throws -> TaskCountResult {
        let count = try client.count(filter)
        guard action == .retry, filter.states?.contains(.paused) == true else { return count }
        // No filter selects by the reason of a pause.
        var owners = Dictionary(count.owners.map { ($0.owner, $0.tasks) }) { $1 }
        var paused = filter
        paused.states = [.paused]
        try client.forEachPage(filter: paused) { page in
            for task in page where !action.affects(task) { owners[task.owner, default: 0] -= 1 }
            return true
        }
        return TaskCountResult(
            owners: owners.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map {
                TaskCountResult.Owner(owner: $0.key, tasks: $0.value)
            })
    }

    /// The maximum number of ids whose owners are looked up.
    private static let lookedIDs = 1_000

    /// Obtains confirmation for tasks selected by id if they belong to more than one user.
    func obtain(for ids: [TaskID], _ client: ControlClient) throws {
        guard ids.count > 1 else { return }
        var tasks: [UInt32: Int] = [:]
        for id in ids.prefix(Self.lookedIDs) {
            if let owner = try client.taskIfKnown(id)?.owner { tasks[owner, default: 0] += 1 }
        }
        guard tasks.count > 1 else { return }
        let count = TaskCountResult(
            owners: tasks.sorted { $0.key < $1.key }.map { TaskCountResult.Owner(owner: $0.key, tasks: $0.value) })
        try obtain(count, count.owners.filter { $0.owner != getuid() })
    }

    private func obtain(_ count: TaskCountResult, _ others: [TaskCountResult.Owner]) throws {
        guard let isConfirmed = Self.ask("\(action.verb) \(Self.text(count, others))?") else {
            guard !others.isEmpty else { return }
            throw Failure.usage(
                "\(Self.text(count, others)) would be \(action.participle); confirm with --yes, select only your own "
                    + "tasks with --owner \(getuid()), or list the tasks with --dry-run", field: "--yes")
        }
        guard isConfirmed else { throw Failure(.failed, "no task was \(action.participle)") }
    }

    /// Obtains confirmation for a queue file that ends more than half of a batch.
    ///
    /// - Parameter plan: what the file would change.
    static func obtain(for plan: QueueCommitResult, ofBatch batch: String) throws(Failure) {
        let all = plan.unchanged + plan.updated + plan.checked + plan.pruned
        guard plan.pruned > all / 2 else { return }
        let text = "\(plan.pruned) of the \(Describe.count(all, "task")) of the batch \(Escape.visible(batch))"
        guard let isConfirmed = ask("cancel \(text)?") else {
            throw Failure.usage(
                "--prune: would cancel \(text); confirm with --yes, or list them with --dry-run", field: "--yes")
        }
        guard isConfirmed else { throw Failure(.failed, "nothing was changed") }
    }

    /// Asks a question on the terminal.
    ///
    /// - Returns: `nil` without a terminal.
    private static func ask(_ question: String) -> Bool? {
        guard Terminal.isTerminal(STDIN_FILENO), Terminal.isTerminal(STDERR_FILENO) else { return nil }
        let errors = Output(STDERR_FILENO)
        errors.text("\(question) [y/N] ")
        errors.flush()
        let line = readLine()
        // At the end of input the cursor is still on the line of the question.
        if line == nil {
            errors.line("")
            errors.flush()
        }
        return ["y", "yes"].contains(line?.lowercased() ?? "")
    }

    /// Returns text such as `12 tasks, 9 of them owned by other users (uid 1000: 5, uid 1001: 4)`.
    static func text(_ count: TaskCountResult, _ others: [TaskCountResult.Owner]) -> String {
        let all = Describe.count(count.tasks, "task")
        guard !others.isEmpty else { return all }
        let shown = others.prefix(shownOwners).map { "uid \($0.owner): \($0.tasks)" }.joined(separator: ", ")
        let number = others.reduce(0) { $0 + $1.tasks }
        let share = number == count.tasks ? (number == 1 ? "" : "all ") : "\(number) of them "
        return "\(all), \(share)owned by other users (\(shown)\(others.count > shownOwners ? ", …" : ""))"
    }

    private static let shownOwners = 8
}
