import GRDB
package import TaskModel

extension Database {
    /// Records a task's event in the transaction that makes the change.
    @discardableResult
    func journal(
        _ type: TaskEvent.Kind, of task: TaskHead, error: TaskFailure? = nil, at now: Milliseconds
    ) throws -> TaskEvent {
        let lifecycle = task.lifecycle
        try run(
            """
            INSERT INTO event (at, type, task_id, owner, state, reason, error_code, error_message, http_status)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            StatementArguments(
                [now, type.rawValue, task.id.rawValue, task.owner]
                    + Array(lifecycle.arguments.prefix(2)) + error.arguments))
        return TaskEvent(
            sequence: lastInsertedRowID, at: now, type: type, id: task.id,
            state: lifecycle.state == .active ? .queued : lifecycle.state, reason: lifecycle.reason, error: error)
    }

    /// Records the addition of tasks like ``journal(_:of:error:at:)``, in one row that stands for one sequence number
    /// per task.
    func journalAdded(_ tasks: TaskRange, owner: UInt32, at now: Milliseconds) throws {
        try run(
            """
            INSERT INTO event (sequence, at, type, task_id, owner, state, reason, count)
            VALUES (
                ?7 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0), ?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """,
            [
                now, TaskEvent.Kind.added.rawValue, tasks.ids.lowerBound, owner, tasks.state.rawValue,
                tasks.reason?.rawValue, tasks.ids.count,
            ])
    }
}

extension TaskStore {
    /// Returns the sequence number of the newest event ever recorded; 0 if there is none.
    package func lastEvent() throws(StoreError) -> Int64 {
        try read { try $0.newestNumber(in: "event") }
    }

    /// Returns the sequence number of the oldest event that is still in the journal.
    package func oldestEvent() throws(StoreError) -> Int64? {
        try read { database in
            try database.firstRow("SELECT sequence - count + 1 FROM event ORDER BY sequence LIMIT 1") {
                try $0.integer(0)
            }
        }
    }

    /// Returns at most `limit` events with larger sequence numbers than `sequence`, in order.
    ///
    /// - Parameters:
    ///   - types: the types to return; `nil` for all.
    ///   - owner: the user whose tasks' events are returned, including those of removed tasks; `nil` for all users.
    package func events(
        after sequence: Int64, limit: Int, types: Set<TaskEvent.Kind>? = nil, owner: UInt32? = nil
    ) throws(StoreError) -> [TaskEvent] {
        let types = try types.map { types throws(StoreError) in try StoredJSON.encode(types.map(\.rawValue)) }
        let rows = try read { database in
            try database.rows(
                """
                SELECT sequence, at, type, task_id, state, reason, error_code, error_message, http_status, count
                FROM event \(owner == nil ? "NOT INDEXED" : "INDEXED BY event_owner")
                WHERE sequence > ?1 AND \(owner == nil ? "?2 IS NULL" : "owner = ?2")
                    AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))
                ORDER BY sequence LIMIT ?4
                """, [sequence, owner, types, limit]
            ) { row in
                (
                    last: TaskEvent(
                        sequence: try row.integer(0), at: try row.integer(1), type: try row.word(2),
                        id: try row.id(3), state: try row.word(4), reason: try row.wordOrNil(5),
                        error: try row.failure(6)),
                    count: try row.integer(9)
                )
            }
        }
        guard limit > 0 else { return [] }
        var events: [TaskEvent] = []
        events.reserveCapacity(rows.count)
        for (last, count) in rows {
            var event = last
            guard count >= 1, count <= last.sequence else {
                throw .corrupt("an event has an invalid range of sequence numbers")
            }
            let before = last.sequence - count
            // The row's first sequence number may precede the requested ones.
            let wanted = max(before, sequence)
            for number in 1...min(last.sequence - wanted, Int64(limit - events.count)) {
                event.sequence = wanted + number
                event.id = last.id.map { TaskID($0.rawValue &+ (event.sequence - before - 1)) }
                events.append(event)
            }
            if events.count >= limit { break }
        }
        return events
    }
}
