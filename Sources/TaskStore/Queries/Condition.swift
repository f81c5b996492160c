import GRDB
import TaskModel

/// A task filter as an SQL condition on ``GroupSQL/tasks``. It combines the stored states with the scheduler's set of
/// running tasks.
struct Condition {
    private var clauses: [String] = []
    private(set) var arguments: [(any DatabaseValueConvertible)?] = []

    /// The condition; never empty.
    var sql: String { clauses.isEmpty ? "TRUE" : clauses.joined(separator: " AND ") }

    init(_ filter: TaskFilter, owner: UInt32?, running: Set<TaskID>) {
        if let owner { add("task.owner = ?", owner) }
        if let owner = filter.owner { add("task.owner = ?", owner) }
        if let batch = filter.batch { add("batch = ?", batch) }
        if let states = filter.states, !states.isEmpty { add(states: Set(states), running: running) }
        addTextAndTime(of: filter)
    }

    /// Creates a condition from the search text and the times of the filter only.
    init(textAndTimeOf filter: TaskFilter) { addTextAndTime(of: filter) }

    private mutating func addTextAndTime(of filter: TaskFilter) {
        if let since = filter.since { add("coalesce(finished_at, created_at) >= ?", since) }
        if let until = filter.until { add("coalesce(finished_at, created_at) < ?", until) }
        if let search = filter.search, !search.isEmpty { add(search: search) }
    }

    mutating func add(_ clause: String, _ values: (any DatabaseValueConvertible)?...) {
        clauses.append(clause)
        arguments += values
    }

    /// Adds a condition on states. A running task is stored as `queued`. A task stored with any other state has already
    /// reached it, even if the scheduler has not yet learned that the state was stored. A client that was notified of a
    /// task's end therefore finds the task ended.
    private mutating func add(states: Set<TaskState>, running: Set<TaskID>) {
        let running = running.isEmpty ? nil : TaskStore.list(running)
        var stored = states.subtracting([.active])
        var choices: [String] = []
        if let running {
            if states.contains(.active) {
                choices.append("(state = 'queued' AND task.id IN (SELECT value FROM json_each(?)))")
                arguments.append(running)
            }
            if stored.remove(.queued) != nil {
                choices.append("(state = 'queued' AND task.id NOT IN (SELECT value FROM json_each(?)))")
                arguments.append(running)
            }
        }
        // Each word is a fixed state name and needs no escaping.
        let words = stored.map { "'\($0.rawValue)'" }.sorted()
        if !words.isEmpty {
            // For one state, an equality condition lets SQLite read the index in the order of ids.
            choices.append(words.count == 1 ? "state = \(words[0])" : "state IN (\(words.joined(separator: ", ")))")
        }
        clauses.append(choices.isEmpty ? "FALSE" : "(\(choices.joined(separator: " OR ")))")
    }

    /// Adds a condition on the text. `instr` compares whole stretches of memory. `LIKE` would compare characters one by
    /// one, a million of them for a long pattern that almost fits everywhere.
    private mutating func add(search: String) {
        let folded = search.lowercased()
        // SQLite folds the case of ASCII characters only; the GRDB function folds case like Swift.
        let fold = search.utf8.allSatisfy { $0 < 0x80 } ? "lower" : "swiftLowercaseString"
        add("(instr(\(fold)(url), ?) > 0 OR instr(\(fold)(path), ?) > 0)", folded, folded)
    }
}
