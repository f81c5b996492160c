import GRDB
package import TaskModel

/// The SQL statements that read ready tasks in the order of start, part by part.
enum QueueOrderSQL {
    static let following = """
        SELECT id, priority, position, host_fingerprint FROM task INDEXED BY task_ready
        WHERE state = 'queued' AND group_id = ? AND priority = ? AND (position, id) > (?, ?)
        ORDER BY position, id LIMIT ?
        """
    static let nextOwner = """
        SELECT owner FROM fair_share_group WHERE owner > ? AND \(GroupSQL.visible) ORDER BY owner LIMIT 1
        """
}

extension TaskStore {
    /// Returns the tasks of a group that follow a task in the order of start.
    ///
    /// - Parameter task: the task after which to start; `nil` for the beginning.
    package func readyTasks(
        of group: Int64, after task: ReadyTask?, limit: Int
    ) throws(StoreError) -> [ReadyTask] {
        try read { database in
            var tasks: [ReadyTask] = []
            for rank in TaskPriority.allCases.map(\.rank).sorted(by: >)
            where rank <= task?.priority ?? .max && tasks.count < limit {
                let start = rank == task?.priority ? task : nil
                tasks += try database.rows(
                    QueueOrderSQL.following,
                    [group, rank, start?.position ?? .min, start?.id.rawValue ?? .min, limit - tasks.count],
                    ReadyTask.init)
            }
            return tasks
        }
    }

    /// Returns the records of those of `ids` that are ready and match the filter, in no particular order.
    ///
    /// - Parameter owner: as in ``PageQuery``.
    package func readyRecords(
        of ids: [TaskID], matching filter: TaskFilter, owner: UInt32?
    ) throws(StoreError) -> [TaskRecord] {
        var filter = filter
        filter.states = [.queued]
        let condition = Condition(filter, owner: owner, running: [])
        return try read(within: .asked) { database in
            try database.rows(
                """
                SELECT \(TaskRecord.columns) FROM \(GroupSQL.tasks)
                WHERE task.id IN (SELECT value FROM json_each(?)) AND \(condition.sql)
                """, StatementArguments([Self.list(ids)] + condition.arguments), TaskRecord.init)
        }
    }

    /// Whether tasks of more than one owner exist.
    package func hasSeveralOwners() throws(StoreError) -> Bool {
        try read { database in
            guard let first = try database.firstRow(QueueOrderSQL.nextOwner, [-1], { try $0.integer(0) }) else {
                return false
            }
            return try database.firstRow(QueueOrderSQL.nextOwner, [first], { try $0.integer(0) }) != nil
        }
    }
}
