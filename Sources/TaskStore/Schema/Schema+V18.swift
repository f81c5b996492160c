import GRDB

extension Schema {
    /// Gives each delay that a host requested its task, and each task the pauses that it returns to.
    ///
    /// `host_hold`, which had one delay for each host, stays empty from here on. `task.pauses` are the ``TaskPauses`` of
    /// a paused task; 0 for one that was paused before this version.
    @Sendable static func createPauses(_ database: Database) throws {
        try database.execute(
            sql: """
                CREATE TABLE task_hold (
                    task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
                    held_until INTEGER NOT NULL
                ) STRICT;
                INSERT INTO task_hold (task_id, held_until)
                SELECT task.id, held_until FROM task INDEXED BY task_waiting JOIN host_hold ON mark = host_mark
                WHERE state = 'waiting' AND not_before IS NOT NULL AND http_status IN (429, 503);
                DELETE FROM host_hold;

                ALTER TABLE task ADD COLUMN pauses INTEGER NOT NULL DEFAULT 0;
                """)
    }
}
