import GRDB
package import TaskModel

extension TaskStore {
    /// Returns the number of tasks of all users by kind and stored state; states without a task are absent.
    ///
    /// The cost depends on the number of uploads, but not on the number of downloads.
    package func countsByKind() throws(StoreError) -> [TaskKind: [TaskState: Int]] {
        try read { database in
            var downloads =
                try database.firstRow("SELECT \(GroupSQL.counts) FROM fair_share_group WHERE \(GroupSQL.visible)") {
                    try $0.counts(0)
                } ?? [:]
            var uploads: [TaskState: Int] = [:]
            let rows = try database.rows(
                """
                SELECT state, sum(part.tasks) FROM (
                    SELECT group_id, state, count(*) AS tasks FROM task INDEXED BY task_upload
                    WHERE kind = 'upload' GROUP BY group_id, state
                ) AS part JOIN fair_share_group ON fair_share_group.id = part.group_id AND \(GroupSQL.visible)
                GROUP BY state
                """
            ) { row in (state: try row.text(0), tasks: try row.int(1)) }
            for row in rows {
                guard let state = TaskState(rawValue: row.state) else { continue }
                uploads[state] = row.tasks
                downloads[state] = max(0, (downloads[state] ?? 0) - row.tasks)
            }
            return [.download: downloads.filter { $0.value > 0 }, .upload: uploads]
        }
    }
}
