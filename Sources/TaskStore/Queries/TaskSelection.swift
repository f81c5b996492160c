import GRDB
import TaskModel

/// A query for matching tasks whose cost does not grow with the number of tasks that do not match.
///
/// The tasks of one group in one state form a lane, and an index contains each lane in the order of ids. If a query
/// covers few lanes, they are read separately and merged. If it covers many, all tasks are scanned and compared with
/// the filter.
struct TaskSelection {
    /// The maximum number of lanes that are read separately.
    private static let maximumLanes = 64

    private struct Lane {
        var group: Int64
        var state: TaskState
    }

    /// The subset of the tasks stored as `queued` that matches.
    private enum Ready {
        case all, running, notRunning
    }

    private let query: PageQuery
    private let database: Database

    init(_ query: PageQuery, in database: Database) {
        self.query = query
        self.database = database
    }

    /// Returns the matching ids in ascending order, at most ``PageQuery/limit``.
    func ids() throws -> [TaskID] {
        guard let (lanes, count) = try lanes() else { return try scanned() }
        var first: Int64 = 0
        if let newest = query.newest, newest < count {
            let ids = try read(lanes, limit: newest, newestFirst: true).sorted(by: >).prefix(newest)
            guard let last = ids.last else { return [] }
            first = last
        }
        let after = max(first - 1, query.after?.rawValue ?? 0)
        return try read(lanes, after: after, limit: query.limit).sorted().prefix(query.limit).map { TaskID($0) }
    }

    // MARK: Lanes

    /// Returns the non-empty lanes and an upper bound of the number of matching tasks; `nil` if there are too many
    /// lanes.
    private func lanes() throws -> (lanes: [Lane], tasks: Int)? {
        let states = storedStates
        guard !states.isEmpty else { return ([], 0) }
        let groups = try database.rows(
            """
            SELECT id, \(TaskState.stored.map(\.rawValue).joined(separator: ", ")) FROM fair_share_group
            WHERE \(GroupSQL.visible) AND (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR owner = ?2)
                AND (?3 IS NULL OR batch = ?3) AND \(states.map(\.rawValue).joined(separator: " + ")) > 0
            LIMIT ?4
            """, [query.owner, query.filter.owner, query.filter.batch, Self.maximumLanes + 1]
        ) { row in
            var counts: [TaskState: Int] = [:]
            for (index, state) in TaskState.stored.enumerated() { counts[state] = try row.int(index + 1) }
            return (id: try row.integer(0), counts: counts)
        }
        guard groups.count <= Self.maximumLanes else { return nil }
        var lanes: [Lane] = []
        var tasks = 0
        for group in groups {
            for state in states {
                guard let count = group.counts[state], count > 0 else { continue }
                lanes.append(Lane(group: group.id, state: state))
                tasks += count
            }
        }
        return lanes.count <= Self.maximumLanes ? (lanes, tasks) : nil
    }

    private var askedStates: Set<TaskState>? {
        guard let states = query.filter.states, !states.isEmpty else { return nil }
        return Set(states)
    }

    private var storedStates: [TaskState] {
        guard let asked = askedStates else { return TaskState.stored }
        // Running tasks are stored as `queued`.
        return TaskState.stored.filter { asked.contains($0) || ($0 == .queued && asked.contains(.active)) }
    }

    private var ready: Ready {
        guard let asked = askedStates else { return .all }
        switch (asked.contains(.queued), asked.contains(.active)) {
        case (true, true): return .all
        case (true, false): return query.running.isEmpty ? .all : .notRunning
        case (false, _): return .running
        }
    }

    private func read(_ lanes: [Lane], after: Int64 = 0, limit: Int, newestFirst: Bool = false) throws -> [Int64] {
        let condition = Condition(textAndTimeOf: query.filter)
        let running = TaskStore.list(query.running)
        var ids: [Int64] = []
        for lane in lanes {
            var sql = "SELECT id FROM task INDEXED BY task_state WHERE group_id = ? AND state = ? AND id > ?"
            var arguments: [(any DatabaseValueConvertible)?] = [lane.group, lane.state.rawValue, after]
            if lane.state == .queued, ready != .all {
                sql += " AND id \(ready == .running ? "" : "NOT ")IN (SELECT value FROM json_each(?))"
                arguments.append(running)
            }
            sql += " AND \(condition.sql) ORDER BY id \(newestFirst ? "DESC" : "ASC") LIMIT ?"
            arguments += condition.arguments + [limit]
            ids += try database.rows(sql, StatementArguments(arguments)) { try $0.integer(0) }
        }
        return ids
    }

    // MARK: One by one

    private func scanned() throws -> [TaskID] {
        var condition = Condition(query.filter, owner: query.owner, running: query.running)
        if let newest = query.newest {
            // The start of the newest tasks is determined from all matching tasks, independently of where the page
            // starts.
            let first = try database.firstRow(
                """
                SELECT min(id) FROM (
                    SELECT task.id AS id FROM \(GroupSQL.tasks) WHERE \(condition.sql) ORDER BY task.id DESC LIMIT ?)
                """, StatementArguments(condition.arguments + [newest])
            ) { try $0.integerOrNil(0) }
            guard let first, let first else { return [] }
            condition.add("task.id >= ?", first)
        }
        if let after = query.after { condition.add("task.id > ?", after.rawValue) }
        return try database.rows(
            "SELECT task.id FROM \(GroupSQL.tasks) WHERE \(condition.sql) ORDER BY task.id LIMIT ?",
            StatementArguments(condition.arguments + [query.limit])
        ) { try $0.id(0) }
    }
}
