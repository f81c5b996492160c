import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// The result of a call that adds tasks.
struct AddedTasks: Equatable {
    /// The ids that the call prints: those of new tasks and of existing tasks found by their keys.
    var ids: [TaskID]
    /// The ``ids`` of tasks that existed before the call.
    var found: [TaskID] = []
    /// The number of entries of an existing batch that changed their task, and of those that left it unchanged. `nil`
    /// if no batch was applied.
    var applied: (updated: Int, unchanged: Int)?
    /// Warnings about what of the tasks is passed over.
    var notes: [String] = []

    init(_ result: TaskAddResult) {
        ids = result.ids
        found = result.found
        notes = result.notes
    }

    init(_ result: QueueCommitResult) {
        ids = result.taskIDs
        applied = (result.updated, result.unchanged + result.checked)
    }

    static func == (one: AddedTasks, other: AddedTasks) -> Bool {
        one.ids == other.ids && one.found == other.found && one.notes == other.notes
            && one.applied?.updated == other.applied?.updated
            && one.applied?.unchanged == other.applied?.unchanged
    }

    // MARK: - Existing tasks

    /// Returns a note on the one task that the call found by its key, or `nil` if it found none or several.
    func note(of task: TaskStatus) -> String? {
        guard found == [task.id], let key = task.key else { return nil }
        let rest = ids.count == 1 ? "nothing was added" : "it was not added again"
        return "task \(task.id) already has the key \(key) (\(task.state.rawValue)); \(rest)"
    }

    /// The number of tasks that existed before the call.
    var countOfFound: Int { applied.map { $0.updated + $0.unchanged } ?? found.count }

    /// Returns a note on several tasks that the call found.
    ///
    /// - Parameter states: the number of tasks by state, or empty if the states are unknown.
    func note(states: [String: Int]) -> String {
        let count = countOfFound
        let isWhole = states.values.reduce(0, +) == count
        var text = ids.count == found.count ? "nothing to add: " : ""
        text += "\(Describe.count(count, "task")) already \(count == 1 ? "exists" : "exist")"
        if isWhole { text += " (\(Describe.counts(states)))" }
        if let applied, applied.updated > 0 { text += ", of which \(applied.updated) changed" }
        return text
    }
}

extension QueueCommitResult {
    /// The ids of the added tasks, with the ranges expanded.
    var taskIDs: [TaskID] {
        ids.flatMap { range -> [TaskID] in
            guard let first = range.first?.rawValue, let last = range.last?.rawValue, first <= last else { return [] }
            return (first...last).map { TaskID($0) }
        }
    }
}
