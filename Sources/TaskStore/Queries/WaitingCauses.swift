import GRDB
package import TaskModel

extension WaitingCauses {
    /// The maximum number of tasks to examine: half of them are the next to be retried, a quarter is divided among the
    /// groups, and a quarter is taken group by group.
    static let limit = 5_000
    /// The maximum number of causes to return.
    static let maximumCauses = 5

    static let query = """
        WITH waiting_group (id) AS (
            SELECT id FROM fair_share_group
            WHERE waiting > 0 AND \(GroupSQL.visible) AND (?1 IS NULL OR owner = ?1) LIMIT ?3),
        looked (id) AS (
            SELECT id FROM (
                SELECT task.id AS id
                FROM fair_share_group CROSS JOIN task INDEXED BY task_state
                    ON task.group_id = fair_share_group.id AND task.state = 'waiting'
                WHERE fair_share_group.waiting > 0 AND \(GroupSQL.visible)
                    AND (?1 IS NULL OR fair_share_group.owner = ?1)
                LIMIT ?3)
            UNION
            SELECT task.id FROM waiting_group CROSS JOIN task ON task.id IN (
                SELECT own.id FROM task AS own INDEXED BY task_state
                WHERE own.group_id = waiting_group.id AND own.state = 'waiting'
                LIMIT max(1, ?3 / (SELECT count(*) FROM waiting_group)))
            UNION
            SELECT first.id FROM (
                SELECT id, group_id FROM task INDEXED BY task_waiting
                WHERE state = 'waiting' AND not_before IS NOT NULL ORDER BY not_before LIMIT ?2) AS first
            CROSS JOIN fair_share_group ON fair_share_group.id = first.group_id AND \(GroupSQL.visible)
                AND (?1 IS NULL OR fair_share_group.owner = ?1)
        )
        SELECT reason, error_code, iif(min(error_message) = max(error_message), min(error_message), NULL),
            count(*), min(not_before)
        FROM looked CROSS JOIN task ON task.id = looked.id
        GROUP BY reason, error_code ORDER BY count(*) DESC, reason, error_code
        """
}

extension TaskStore {
    /// Returns the causes for which tasks wait. The cost is bounded: at most ``WaitingCauses/limit`` tasks are
    /// examined.
    package func waitingCauses(owner: UInt32?) throws(StoreError) -> WaitingCauses {
        try read { database in
            let causes = try database.rows(
                WaitingCauses.query, [owner, WaitingCauses.limit / 2, WaitingCauses.limit / 4]
            ) { row in
                WaitingCause(
                    reason: try row.text(0), code: try row.textOrNil(1).map { ErrorCode(rawValue: $0) },
                    message: try row.textOrNil(2), tasks: try row.int(3), notBefore: try row.integerOrNil(4))
            }
            return WaitingCauses(
                counted: causes.reduce(0) { $0 + $1.tasks }, causes: Array(causes.prefix(WaitingCauses.maximumCauses)))
        }
    }
}
