import GRDB

extension Schema {
    /// Adds the last attempts of tasks.
    ///
    /// `number` grows with each attempt of a task. The steps from `name` to `first_byte` are milliseconds from the start
    /// of the attempt.
    @Sendable static func createAttempts(_ database: Database) throws {
        try database.execute(
            sql: """
                CREATE TABLE task_attempt (
                    task_id INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
                    number INTEGER NOT NULL,
                    started_at INTEGER NOT NULL,
                    ended_at INTEGER,
                    address TEXT,
                    bytes INTEGER NOT NULL,
                    name INTEGER,
                    connect INTEGER,
                    tls INTEGER,
                    first_byte INTEGER,
                    http_version TEXT,
                    status INTEGER,
                    error_code TEXT,
                    error_message TEXT,
                    http_status INTEGER,
                    PRIMARY KEY (task_id, number)
                ) STRICT, WITHOUT ROWID;
                """)
    }
}
