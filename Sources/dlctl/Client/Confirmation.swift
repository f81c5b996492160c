import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// A confirmation before a command changes all tasks, tasks of several users, or most of a batch, and before it removes
/// several tasks, or fetches several files again, that were not named by their ids.
///
/// Without a terminal no confirmation is possible, and the command acts on the caller's own tasks only.
struct Confirmation {
    private let action: SelectionAction
    /// Whether the files of the tasks are deleted.
    private let deletesFiles: Bool

    init(_ action: SelectionAction, deletesFiles: Bool = false) {
        self.action = action
        self.deletesFiles = deletesFiles
    }

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
        let losesFiles = action == .remove || action == .retry && filter.states?.contains(.completed) == true
        guard isAll || !others.isEmpty ? count.tasks > 0 : losesFiles && count.tasks > 1 else { return }
        try obtain(count, others) {
            var states: [String: Int] = [:]
            for state in filter.states ?? TaskState.allCases {
                var part = filter
                part.states = [state]
                states[state.rawValue] = try client.count(part).tasks
            }
            return states
        }
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

    /// Obtains confirmation for tasks selected by id if they belong to more than one user, or if files are deleted.
    func obtain(for ids: [TaskID], _ client: ControlClient) throws {
        guard ids.count > 1 else { return }
        var tasks: [UInt32: Int] = [:]
        var states: [String: Int] = [:]
        for id in ids.prefix(Self.lookedIDs) {
            guard let task = try client.taskIfKnown(id) else { continue }
            tasks[task.owner, default: 0] += 1
            states[task.state.rawValue, default: 0] += 1
        }
        let count = TaskCountResult(
            owners: tasks.sorted { $0.key < $1.key }.map { TaskCountResult.Owner(owner: $0.key, tasks: $0.value) })
        guard tasks.count > 1 || deletesFiles && count.tasks > 1 else { return }
        let others = count.owners.filter { $0.owner != getuid() }
        try obtain(count, others, isPart: ids.count > Self.lookedIDs) { states }
    }

    /// - Parameters:
    ///   - isPart: whether there are more tasks than were counted.
    ///   - states: reads the numbers of the tasks by their states.
    private func obtain(
        _ count: TaskCountResult, _ others: [TaskCountResult.Owner], isPart: Bool = false,
        _ states: () throws -> [String: Int]
    ) throws {
        let tasks = (isPart ? "more than " : "") + Self.text(count, others)
        guard let isConfirmed = try Self.ask(question(tasks, action == .remove ? states() : [:])) else {
            guard !others.isEmpty else { return }
            throw Failure.usage(
                "\(Self.text(count, others)) would be \(action.participle); confirm with --yes, select only your own "
                    + "tasks with --owner \(getuid()), or list the tasks with --dry-run", field: "--yes")
        }
        guard isConfirmed else { throw Failure(.failed, "no task was \(action.participle)") }
    }

    /// Returns the question about tasks. For `remove` it says what happens to the files.
    ///
    /// - Parameter states: the numbers of the tasks by their states, for `remove`.
    func question(_ tasks: String, _ states: [String: Int]) -> String {
        guard action == .remove else { return "\(action.verb) \(tasks)?" }
        let files = deletesFiles ? "finished files and parts are" : "finished files stay, parts of unfinished ones are"
        return "remove \(tasks) (\(Describe.counts(states)); \(files) deleted)?"
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
    private static func ask(_ question: @autoclosure () throws -> String) rethrows -> Bool? {
        guard Terminal.isTerminal(STDIN_FILENO), Terminal.isTerminal(STDERR_FILENO) else { return nil }
        let errors = Output(STDERR_FILENO)
        errors.text("\(try question()) [y/N] ")
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
