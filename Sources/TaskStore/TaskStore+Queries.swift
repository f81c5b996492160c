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

extension TaskStore {
    /// - Parameter owner: `nil` finds a task of anyone.
    package func record(_ id: TaskID, owner: UInt32?) throws(StoreError) -> TaskRecord? {
        try read { try $0.record(id, owner: owner) }
    }

    /// A page of records as they are stored: the running ones are `queued` among them.
    package func page(_ query: PageQuery) throws(StoreError) -> [TaskRecord] {
        try read { database in
            let ids = try TaskSelection(query, in: database).ids()
            return try database.rows(
                """
                SELECT \(TaskRecord.columns) FROM \(FlowSQL.tasks)
                WHERE task.id IN (SELECT value FROM json_each(?)) ORDER BY task.id
                """, [Self.list(ids)], TaskRecord.init)
        }
    }

    /// Those of `ids` whose tasks may still run: they have neither completed nor been cancelled.
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

    /// The number of tasks that match, by owner; owners without one are left out.
    ///
    /// - Parameter owner: as of ``PageQuery``.
    package func owners(
        matching filter: TaskFilter, owner: UInt32?, running: Set<TaskID>
    ) throws(StoreError) -> [UInt32: Int] {
        let condition = Condition(filter, owner: owner, running: running)
        let counts = try read { database in
            try database.rows(
                "SELECT task.owner, count(*) FROM \(FlowSQL.tasks) WHERE \(condition.sql) GROUP BY task.owner",
                StatementArguments(condition.arguments)
            ) { row in (owner: try row.integer(0), tasks: try row.int(1)) }
        }
        return Dictionary(counts.map { (UInt32(truncatingIfNeeded: $0.owner), $0.tasks) }) { $0 + $1 }
    }

    /// The ids that match, smallest first, for a command on many tasks to go through in parts.
    package func ids(
        matching filter: TaskFilter, owner: UInt32?, running: Set<TaskID>, after: TaskID?, limit: Int
    ) throws(StoreError) -> [TaskID] {
        let query = PageQuery(filter: filter, owner: owner, after: after, limit: limit, running: running)
        return try read { try TaskSelection(query, in: $0).ids() }
    }
}
