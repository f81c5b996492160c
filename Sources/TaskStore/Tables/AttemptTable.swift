import GRDB
package import TaskModel

extension TaskStore {
    /// Returns the last attempts of a task, the oldest first, at most ``TaskAttempt/limit``.
    package func attempts(of id: TaskID) throws(StoreError) -> [TaskAttempt] {
        try read { database in
            try database.rows(
                "SELECT \(TaskAttempt.columns) FROM task_attempt WHERE task_id = ? ORDER BY number DESC LIMIT ?",
                [id.rawValue, TaskAttempt.limit], TaskAttempt.init
            ).reversed()
        }
    }
}

extension TaskAttempt {
    fileprivate static let columns = """
        started_at, ended_at, address, bytes, name_ms, connect_ms, tls_ms, first_byte_ms, http_version,
        response_status, error_code, error_message, http_status, warning, note
        """

    /// The maximum length of an error message, a warning or a note in bytes. A longer one is cut.
    static let longestMessage = 500

    private static func cut(_ message: String) -> String {
        message.utf8.count > longestMessage ? message.prefix(longestMessage - 1) + "…" : message
    }

    fileprivate init(_ row: RowReader) throws(StoreError) {
        self.init(
            startedAt: try row.integer(0), endedAt: try row.integerOrNil(1), address: try row.textOrNil(2),
            bytes: try row.integer(3), name: try row.integerOrNil(4), connect: try row.integerOrNil(5),
            tls: try row.integerOrNil(6), firstByte: try row.integerOrNil(7), httpVersion: try row.textOrNil(8),
            status: try row.integerOrNil(9).flatMap { Int(exactly: $0) }, error: try row.failure(10),
            warning: try row.textOrNil(13), note: try row.textOrNil(14))
    }

    fileprivate func bind(_ row: inout RowBinding) {
        var error = error
        if let message = error?.message { error?.message = Self.cut(message) }
        row.bind(startedAt)
        row.bind(endedAt)
        row.bind(address)
        row.bind(bytes)
        row.bind(name)
        row.bind(connect)
        row.bind(tls)
        row.bind(firstByte)
        row.bind(httpVersion)
        row.bind(status.map(Int64.init))
        row.bind(error)
        row.bind(warning.map(Self.cut))
        row.bind(note.map(Self.cut))
    }

    fileprivate static let insertSQL = """
        INSERT INTO task_attempt (task_id, number, \(columns))
        VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM task_attempt WHERE task_id = ?1), ?2, ?3, ?4, ?5,
            ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
        RETURNING number
        """
}

extension Database {
    /// Adds the attempts of an existing task, and removes those that are no longer kept.
    func add(_ attempts: [TaskAttempt], of id: TaskID, _ runner: StatementRunner) throws {
        var isFull = false
        for attempt in attempts {
            let number = try runner.firstRow(
                TaskAttempt.insertSQL,
                bind: { row in
                    row.bind(id.rawValue)
                    attempt.bind(&row)
                }, { try $0.integer(0) })
            if let number, number > TaskAttempt.limit { isFull = true }
        }
        guard isFull else { return }
        try run(
            """
            DELETE FROM task_attempt WHERE task_id = ?1
                AND number <= (SELECT max(number) FROM task_attempt WHERE task_id = ?1) - ?2
            """, [id.rawValue, TaskAttempt.limit])
    }
}
