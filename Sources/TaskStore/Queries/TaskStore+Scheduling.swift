import GRDB
package import TaskModel

/// The data that the scheduler needs to start a task.
///
/// This is a class because the data is large, is passed on many times, and never changes.
package final class TaskWork: Sendable {
    package let record: TaskRecord
    /// The fingerprint of ``host`` (``Fingerprint``), as in ``ReadyTask``.
    package let hostFingerprint: Int64
    package let secrets: TaskSecrets
    package let resumeData: [UInt8]?
    /// Whether ``TaskStore/pieceHashes(of:)`` returns digests, which are too large to keep in memory for all waiting
    /// tasks.
    package let hasPieceHashes: Bool

    static let query = """
        SELECT \(TaskRecord.columns), json, data,
            EXISTS (SELECT 1 FROM task_piece_hashes WHERE task_piece_hashes.task_id = task.id), host_fingerprint
        FROM \(GroupSQL.tasks)
        LEFT JOIN task_secret ON task_secret.task_id = task.id LEFT JOIN task_resume ON task_resume.task_id = task.id
        """

    init(_ row: RowReader) throws {
        let json = try row.textOrNil(TaskRecord.columnCount)
        record = try TaskRecord(row)
        secrets = try json.map { try StoredJSON.decode(TaskSecrets.self, from: $0) } ?? TaskSecrets()
        resumeData = try row.bytesOrNil(TaskRecord.columnCount + 1)
        hasPieceHashes = try row.integer(TaskRecord.columnCount + 2) as Int64 != 0
        hostFingerprint = try row.integer(TaskRecord.columnCount + 3)
    }

    /// The scheme, name and port of the URL.
    package var host: String { (try? TaskAddress(parsing: record.specification.url))?.hostKey ?? "" }
}

/// The SQL statements that depend on the time. Each names its index. SQLite has no statistics about the number of tasks
/// in each state and would otherwise scan all waiting tasks.
enum SchedulingSQL {
    static let nextWake = """
        SELECT min(not_before) FROM task INDEXED BY task_waiting WHERE state = 'waiting' AND not_before IS NOT NULL
        """
    static let releaseDue = """
        UPDATE task SET state = 'queued', reason = NULL, not_before = NULL WHERE id IN (
            SELECT id FROM task INDEXED BY task_waiting
            WHERE state = 'waiting' AND not_before IS NOT NULL AND not_before <= ?
            ORDER BY not_before LIMIT ?)
        """
}

extension TaskStore {
    /// Returns the time at which the first waiting task becomes ready.
    package func nextWake() throws(StoreError) -> Milliseconds? {
        try read { database in
            try database.firstRow(SchedulingSQL.nextWake) { try $0.integerOrNil(0) } ?? nil
        }
    }

    /// Makes the waiting tasks ready whose time has come.
    ///
    /// - Returns: the number of tasks made ready.
    package func releaseDue(now: Milliseconds) async throws(StoreError) -> Int {
        var total = 0
        while true {
            let (rows, isAll) = try await inSteps { database, rows in
                try database.run(SchedulingSQL.releaseDue, [now, rows])
                return database.changesCount
            }
            total += rows
            if isAll { return total }
        }
    }

    /// Makes the tasks ready that wait for the given reason.
    ///
    /// - Returns: the number of tasks made ready.
    package func release(waitingFor reason: TaskReason) async throws(StoreError) -> Int {
        try await changeWaiting(reasons: [reason]) { database, id in
            try database.run(
                """
                UPDATE task SET state = 'queued', reason = NULL, not_before = NULL
                WHERE id = ? AND state = 'waiting' AND reason = ?
                """, [id.rawValue, reason.rawValue])
        }
    }

    /// Shifts the end of waits after a change of the system clock, so that their duration stays the same. Start times
    /// set by the user are not changed.
    ///
    /// - Parameters:
    ///   - milliseconds: the change of the clock.
    ///   - latest: the latest end of these waits, in the new time.
    ///   - latestAsked: the latest end of waits that a server may have asked for (`Retry-After` with 429 and 503).
    package func shiftWaits(
        by milliseconds: Milliseconds, latest: Milliseconds, latestAsked: Milliseconds
    ) async throws(StoreError) {
        try await writes.perform { try $0.shiftHolds(by: milliseconds) }
        _ = try await changeWaiting(reasons: [.retry, .network, .diskFull, .disk]) { database, id in
            try database.run(
                """
                UPDATE task SET
                    not_before = max(0, min(iif(http_status IN (429, 503), ?, ?), not_before + ?))
                WHERE id = ? AND state = 'waiting' AND not_before IS NOT NULL
                """, [latestAsked, latest, milliseconds, id.rawValue])
        }
    }

    /// Changes the tasks that wait for one of `reasons`.
    ///
    /// - Returns: the number of tasks changed.
    private func changeWaiting(
        reasons: Set<TaskReason>, _ change: @escaping @Sendable (Database, TaskID) throws -> Void
    ) async throws(StoreError) -> Int {
        let words = try StoredJSON.encode(reasons.map(\.rawValue).sorted())
        let ids: [TaskID] = try read { database in
            let groups = try database.rows("SELECT id FROM fair_share_group WHERE waiting > 0") { try $0.integer(0) }
            return try groups.flatMap { group in
                try database.rows(
                    """
                    SELECT id FROM task INDEXED BY task_state
                    WHERE group_id = ? AND state = 'waiting' AND reason IN (SELECT value FROM json_each(?))
                    """, [group, words]
                ) { try $0.id(0) }
            }
        }
        return try await inParts(ids, 0) { database, id, count in
            try change(database, id)
            count += 1
            return 0
        }
    }

    /// Returns a task with all data needed to carry it out.
    package func work(for id: TaskID) throws(StoreError) -> TaskWork? {
        try read { database in
            try database.firstRow(
                TaskWork.query + " WHERE task.id = ?", [id.rawValue], TaskWork.init)
        }
    }
}
