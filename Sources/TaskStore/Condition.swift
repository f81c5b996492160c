import GRDB
import TaskModel

/// A filter as SQL on ``FlowSQL/tasks``, with the scheduler's knowledge of what runs laid over the stored states.
struct Condition {
    private var clauses: [String] = []
    private(set) var arguments: [(any DatabaseValueConvertible)?] = []

    /// Never empty.
    var sql: String { clauses.isEmpty ? "TRUE" : clauses.joined(separator: " AND ") }

    init(_ filter: TaskFilter, owner: UInt32?, running: Set<TaskID>) {
        if let owner { add("task.owner = ?", owner) }
        if let owner = filter.owner { add("task.owner = ?", owner) }
        if let batch = filter.batch { add("batch = ?", batch) }
        if let states = filter.states, !states.isEmpty { add(states: Set(states), running: running) }
        addTextAndTime(of: filter)
    }

    /// What the texts of a task must hold and when it was, and nothing else of the filter.
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

    /// A running task is stored as `queued`. One that is stored as anything else has come to that already, though
    /// the scheduler may not know yet that it is written down: whoever heard of its end finds it ended.
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
        // Every text is one of our own words.
        let words = stored.map { "'\($0.rawValue)'" }.sorted()
        if !words.isEmpty {
            // With one state an equation, which reads the index in the order of ids.
            choices.append(words.count == 1 ? "state = \(words[0])" : "state IN (\(words.joined(separator: ", ")))")
        }
        clauses.append(choices.isEmpty ? "FALSE" : "(\(choices.joined(separator: " OR ")))")
    }

    private mutating func add(search: String) {
        var pattern = "%"
        for scalar in search.unicodeScalars {
            if scalar == "%" || scalar == "_" || scalar == "\\" { pattern.append("\\") }
            pattern.unicodeScalars.append(scalar)
        }
        pattern.append("%")
        if search.utf8.allSatisfy({ $0 < 0x80 }) {
            add(#"(url LIKE ? ESCAPE '\' OR path LIKE ? ESCAPE '\')"#, pattern, pattern)
        } else {
            // SQLite folds the case of ASCII alone; this function of GRDB's folds what Swift does.
            let folded = pattern.lowercased()
            add(
                #"(swiftLowercaseString(url) LIKE ? ESCAPE '\' OR swiftLowercaseString(path) LIKE ? ESCAPE '\')"#,
                folded, folded)
        }
    }
}
