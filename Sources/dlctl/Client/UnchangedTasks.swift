import ControlClient
import ControlProtocol
import TaskModel

/// The reason why a command changed no tasks: they already have the requested state, or the command does not apply to
/// them.
struct UnchangedTasks {
    private let action: SelectionAction
    /// The maximum number of tasks that are named individually.
    private static let named = 3
    /// The maximum number of tasks that are examined.
    private static let maximumExamined = 500

    init(_ action: SelectionAction) { self.action = action }

    /// - Returns: `nil` if there is nothing to report.
    func reason(_ calls: [TaskSelectionParameters], _ client: ControlClient, now: Milliseconds) throws -> String? {
        if let filter = calls.first?.filter {
            if filter == TaskFilter() { return reason(counts: try client.status().tasks, isAll: true) }
            let page = try client.page(TaskListParameters(filter: filter, limit: Self.maximumExamined))
            return reason(
                counts: Self.counts(page.tasks), isAll: false, isPart: page.next != nil,
                conditions: Self.conditions(filter))
        }
        let ids = calls.flatMap { $0.ids ?? [] }
        var tasks: [TaskStatus] = []
        for id in ids.prefix(Self.maximumExamined) { if let task = try client.taskIfKnown(id) { tasks.append(task) } }
        return reason(tasks, isPart: ids.count > Self.maximumExamined, now: now)
    }

    /// Returns the reason for tasks named by their ids.
    func reason(
        _ tasks: [TaskStatus], isPart: Bool = false, now: Milliseconds, clock: ((Milliseconds) -> String)? = nil
    ) -> String? {
        guard !tasks.isEmpty else { return nil }
        guard tasks.count <= Self.named else {
            return "the tasks are already \(Describe.counts(Self.counts(tasks)))" + (isPart ? ", and more" : "")
        }
        return tasks.map { task in
            // A queued task may have a reason that prevents its start.
            let words =
                task.reason != nil && (task.state == .queued || action == .resume)
                ? Describe.state(task, now: now, clock: clock) : nil
            if action == .resume, task.state == .waiting || task.state == .paused {
                return "task \(task.id): \(words ?? task.state.rawValue); \(Self.way(on: task))"
            }
            return "task \(task.id) is already \(task.state.rawValue)" + (words.map { " (\($0))" } ?? "")
        }.joined(separator: ", ")
    }

    /// Returns the reason for tasks that a filter selects.
    ///
    /// - Parameters:
    ///   - counts: the number of tasks by state.
    ///   - isAll: whether the filter has no conditions.
    ///   - isPart: whether there are more tasks than were counted.
    ///   - conditions: the options of the filter besides its states.
    func reason(counts: [String: Int], isAll: Bool, isPart: Bool = false, conditions: String = "") -> String {
        guard counts.values.contains(where: { $0 > 0 }) else { return isAll ? "there are no tasks" : "no task matches" }
        let fitting = action.states.reduce(0) { $0 + (counts[$1.rawValue] ?? 0) }
        if action == .set, fitting > 0 {
            return "\(Describe.count(fitting, "task")) already had these values"
                + (isPart ? " among those examined" : "")
        }
        if action == .resume, fitting > 0 {
            return "\(Describe.count(fitting, "task")) kept waiting for a time or another task, or the pause of its own"
                + (isPart ? " among those examined" : "") + "; --now starts it"
        }
        let none = isAll ? "nothing is" : "none of them is"
        let others = TaskState.allCases.compactMap { state -> String? in
            guard let count = counts[state.rawValue], count > 0 else { return nil }
            return "\(count) \(count == 1 ? "is" : "are") \(state.rawValue)"
                + (command(for: state).map { ": dlctl \($0) \(state.rawValue)\(conditions)" } ?? "")
        }
        return ([none + " " + states] + others).joined(separator: "; ") + (isPart ? "; and more" : "")
    }

    /// Returns the command that does for tasks in another state what was asked for.
    private func command(for state: TaskState) -> String? {
        switch (action, state) {
        case (.retry, .paused), (.retry, .waiting): "resume"
        case (.retry, .completed), (.resume, .completed), (.resume, .failed), (.resume, .cancelled), (.set, .cancelled):
            "retry"
        case (.cancel, .completed), (.cancel, .failed), (.cancel, .cancelled): "remove"
        default: nil
        }
    }

    /// Returns the options of a filter besides its states.
    private static func conditions(_ filter: TaskFilter) -> String {
        let isTimed = filter.since != nil || filter.until != nil
        return (filter.batch.map { " --batch \(Shell.quoted($0))" } ?? "")
            + (filter.search.map { " --search \(Shell.quoted($0))" } ?? "")
            + (filter.owner.map { " --owner \($0)" } ?? "") + (isTimed ? " …" : "")
    }

    /// Returns the way to start a task that a resumption left as it was.
    private static func way(on task: TaskStatus) -> String {
        "dlctl resume \(task.id)" + (task.state == .waiting ? " --now starts it" : " resumes it")
    }

    /// The states to which the command applies.
    private var states: String {
        switch action {
        case .pause: "queued, active or waiting"
        case .resume: "paused or waiting"
        case .retry: "failed, cancelled or in need of a login or URL"
        case .set: "queued, active, waiting, paused or failed"
        case .cancel, .remove: "queued, active, waiting or paused"
        }
    }

    private static func counts(_ tasks: [TaskStatus]) -> [String: Int] {
        tasks.reduce(into: [:]) { $0[$1.state.rawValue, default: 0] += 1 }
    }
}
