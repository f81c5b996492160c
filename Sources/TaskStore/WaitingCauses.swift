import GRDB
import TaskModel

extension WaitingCauses {
    /// Tasks that are looked at.
    static let limit = 5_000
    /// Causes that are told.
    static let maximumCauses = 5

    static let query = """
        SELECT reason, error_code, iif(min(error_message) = max(error_message), min(error_message), NULL),
            count(*), min(not_before)
        FROM (
            SELECT reason, error_code, error_message, not_before
            FROM flow CROSS JOIN task INDEXED BY task_lane ON task.flow = flow.id AND task.state = 'waiting'
            WHERE flow.waiting > 0 AND \(FlowSQL.visible) AND (?1 IS NULL OR flow.owner = ?1)
            LIMIT ?2)
        GROUP BY reason, error_code ORDER BY count(*) DESC, reason, error_code
        """
}

extension TaskStore {
    /// Why tasks wait. Costs the same however many wait: at most ``WaitingCauses/limit`` of them are looked at.
    package func waitingCauses(owner: UInt32?) throws(StoreError) -> WaitingCauses {
        try read { database in
            let causes = try database.rows(WaitingCauses.query, [owner, WaitingCauses.limit]) { row in
                WaitingCause(
                    reason: try row.text(0), code: try row.textOrNil(1).map { ErrorCode(rawValue: $0) },
                    message: try row.textOrNil(2), tasks: try row.int(3), notBefore: try row.integerOrNil(4))
            }
            return WaitingCauses(
                counted: causes.reduce(0) { $0 + $1.tasks }, causes: Array(causes.prefix(WaitingCauses.maximumCauses)))
        }
    }
}
