import GRDB
package import TaskModel

/// A query for a page of tasks, oldest first.
package struct PageQuery: Sendable {
    package var filter: TaskFilter
    /// The user whose tasks are returned; `nil` for all users. The owner in the filter applies in addition.
    package var owner: UInt32?
    /// The id after which the page starts.
    package var after: TaskID?
    package var limit: Int
    /// The number of newest matching tasks with whose oldest the result starts.
    package var newest: Int?
    /// The running tasks; they count as `active`, regardless of their stored state.
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

/// Queries for records of tasks, and counts of matching tasks.
extension TaskStore {
    /// Returns the record of a task.
    ///
    /// - Parameter owner: the user whose task is returned; `nil` for all users.
    package func record(_ id: TaskID, owner: UInt32?) throws(StoreError) -> TaskRecord? {
        try read { try $0.record(id, owner: owner) }
    }

    /// The maximum number of records that ``forEachRecord(of:owner:_:)`` has in memory.
    private static let recordsAtOnce = 128

    /// Calls `body` with the records of tasks in the order of `ids`, without those that do not exist or belong to another
    /// user. No transaction is open during a call.
    ///
    /// - Parameters:
    ///   - ids: any number of tasks; a few records are read at once.
    ///   - owner: the user whose tasks are read; `nil` for all users.
    package func forEachRecord(
        of ids: [TaskID], owner: UInt32?, _ body: (TaskRecord) -> Void
    ) throws(StoreError) {
        for start in stride(from: 0, to: ids.count, by: Self.recordsAtOnce) {
            let part = ids[start..<min(start + Self.recordsAtOnce, ids.count)]
            let records = try read { database in try part.compactMap { try database.record($0, owner: owner) } }
            records.forEach(body)
        }
    }

    /// Returns a page of records as stored; running tasks have the state `queued` in them.
    package func page(_ query: PageQuery) throws(StoreError) -> [TaskRecord] {
        try read(within: .asked) { database in
            let ids = try TaskSelection(query, in: database).ids()
            return try database.rows(
                """
                SELECT \(TaskRecord.columns) FROM \(GroupSQL.tasks)
                WHERE task.id IN (SELECT value FROM json_each(?)) ORDER BY task.id
                """, [Self.list(ids)], TaskRecord.init)
        }
    }

    /// Returns those of `ids` whose tasks may still run, which are neither completed nor cancelled.
    package func unfinished(_ ids: [TaskID]) throws(StoreError) -> Set<TaskID> {
        try read { database in
            Set(
                try database.rows(
                    """
                    SELECT id FROM task
                    WHERE id IN (SELECT value FROM json_each(?)) AND state NOT IN ('completed', 'cancelled')
                    """, [Self.list(ids)]
                ) { row in TaskID(try row.integer(0)) })
        }
    }

    /// Returns the number of matching tasks by owner; owners without one are omitted.
    ///
    /// - Parameter owner: as in ``PageQuery``.
    package func owners(
        matching filter: TaskFilter, owner: UInt32?, running: Set<TaskID>
    ) throws(StoreError) -> [UInt32: Int] {
        let condition = Condition(filter, owner: owner, running: running)
        let counts = try read(within: .asked) { database in
            try database.rows(
                "SELECT task.owner, count(*) FROM \(GroupSQL.tasks) WHERE \(condition.sql) GROUP BY task.owner",
                StatementArguments(condition.arguments)
            ) { row in (owner: try row.integer(0), tasks: try row.int(1)) }
        }
        return Dictionary(counts.map { (UInt32(truncatingIfNeeded: $0.owner), $0.tasks) }) { $0 + $1 }
    }

    /// Returns matching ids in ascending order, for processing in parts by a command on many tasks.
    package func ids(
        matching filter: TaskFilter, owner: UInt32?, running: Set<TaskID>, after: TaskID?, limit: Int
    ) throws(StoreError) -> [TaskID] {
        let query = PageQuery(filter: filter, owner: owner, after: after, limit: limit, running: running)
        return try read(within: .chosen) { try TaskSelection(query, in: $0).ids() }
    }
}
