import GRDB
import TaskModel

/// Which tasks to read, oldest first.
package struct PageQuery: Sendable {
    package var filter: TaskFilter
    /// Only this user's tasks; `nil`: everyone's. The filter's owner holds besides.
    package var owner: UInt32?
    /// Only larger ids.
    package var after: TaskID?
    package var limit: Int
    /// Begin at the first of the newest so many that match.
    package var newest: Int?
    /// The tasks that run: `active`, whatever is stored of them.
    package var running: Set<TaskID>

    package init(
        filter: TaskFilter = TaskFilter(), owner: UInt32? = nil, after: TaskID? = nil, limit: Int,
        newest: Int? = nil, running: Set<TaskID> = []
    ) {
        self.filter = filter
        self.owner = owner
        self.after = after
        self.limit = limit
        self.newest = newest
        self.running = running
    }
}

/// A batch with its tasks by stored state; states without a task are absent.
package struct BatchCounts: Sendable, Equatable {
    package var batch: String
    package var counts: [TaskState: Int]
}

extension TaskStore {
    /// - Parameter owner: `nil` finds a task of anyone.
    package func record(_ id: TaskID, owner: UInt32?) throws(StoreError) -> TaskRecord? {
        try read { try $0.record(id, owner: owner) }
    }

    /// A page of records as they are stored: the running ones are `queued` among them.
    package func page(_ query: PageQuery) throws(StoreError) -> [TaskRecord] {
        try read { database in
            var condition = Condition(query.filter, owner: query.owner, running: query.running)
            if let newest = query.newest {
                // The whole set decides where it begins, wherever the page does.
                let first = try database.firstRow(
                    "SELECT min(id) FROM (SELECT id FROM task WHERE \(condition.sql) ORDER BY id DESC LIMIT ?)",
                    StatementArguments(condition.arguments + [newest])
                ) { try $0.integerOrNil(0) }
                guard let first, let first else { return [] }
                condition.add("id >= ?", first)
            }
            if let after = query.after { condition.add("id > ?", after.rawValue) }
            return try database.rows(
                "SELECT \(TaskRecord.columns) FROM task WHERE \(condition.sql) ORDER BY id LIMIT ?",
                StatementArguments(condition.arguments + [query.limit]), TaskRecord.init)
        }
    }

    /// The ids that match, smallest first, for a command on many tasks to go through in parts.
    package func ids(
        matching filter: TaskFilter, owner: UInt32?, running: Set<TaskID>, after: TaskID?, limit: Int
    ) throws(StoreError) -> [TaskID] {
        try read { database in
            var condition = Condition(filter, owner: owner, running: running)
            if let after { condition.add("id > ?", after.rawValue) }
            return try database.rows(
                "SELECT id FROM task WHERE \(condition.sql) ORDER BY id LIMIT ?",
                StatementArguments(condition.arguments + [limit])
            ) { try $0.id(0) }
        }
    }

    /// Tasks by stored state; states without a task are absent.
    package func counts(owner: UInt32?) throws(StoreError) -> [TaskState: Int] {
        try read { database in
            let counts: [(TaskState, Int)] = try database.rows(
                "SELECT state, count(*) FROM task WHERE ?1 IS NULL OR owner = ?1 GROUP BY state", [owner]
            ) { (try $0.word(0), try $0.int(1)) }
            return Dictionary(counts) { $0 + $1 }
        }
    }

    /// The batches that have tasks, by name.
    package func batches(owner: UInt32?) throws(StoreError) -> [BatchCounts] {
        try read { database in
            let rows: [(batch: String, state: TaskState, count: Int)] = try database.rows(
                """
                SELECT batch, state, count(*) FROM task WHERE batch IS NOT NULL AND (?1 IS NULL OR owner = ?1)
                GROUP BY batch, state ORDER BY batch
                """, [owner]
            ) { (try $0.text(0), try $0.word(1), try $0.int(2)) }
            var batches: [BatchCounts] = []
            for row in rows {
                if batches.last?.batch != row.batch { batches.append(BatchCounts(batch: row.batch, counts: [:])) }
                batches[batches.count - 1].counts[row.state] = row.count
            }
            return batches
        }
    }
}
