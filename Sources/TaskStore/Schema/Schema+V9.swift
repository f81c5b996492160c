import GRDB

extension Schema {
    /// The maximum number of bytes counted for one task. With a million tasks, the sum still fits into an integer of
    /// SQLite. The limit is needed because a file created by a user and found by a task in its place may have any
    /// apparent size.
    static let countedBytes: Int64 = 1 << 43

    /// The SQL expression for the number of bytes that a task still needs: -1 if unknown and the task was started, 0 if
    /// unknown and it was not started.
    static let quotaNeed =
        "iif(bytes_total IS NULL, iif(started_at IS NULL, 0, -1), max(bytes_total - bytes_done, 0))"

    /// Adds the bytes that each owner's downloads take up, maintained with every task, and an index of tasks that wait
    /// for quota.
    ///
    /// `owner_total.bytes` is the sum over the owner's downloads of the bytes on disk, as a part file or a complete
    /// file. A new task has no bytes, so triggers do not cover added tasks.
    @Sendable static func createOwnerBytes(_ database: Database) throws {
        let counted = { (row: String) in "min(\(row)bytes_done, \(countedBytes))" }
        let changed = { (terms: String) in "CAST(min(max(bytes \(terms), 0), \(Int64.max)) AS INTEGER)" }
        try database.execute(
            sql: """
                ALTER TABLE owner_total ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
                INSERT INTO owner_total (owner, bytes)
                SELECT owner, CAST(min(total(\(counted(""))), \(Int64.max / 2)) AS INTEGER) FROM task
                WHERE kind = 'download' AND bytes_done > 0 GROUP BY owner
                ON CONFLICT (owner) DO UPDATE SET bytes = excluded.bytes;

                CREATE TRIGGER bytes_change AFTER UPDATE OF bytes_done ON task
                WHEN old.bytes_done <> new.bytes_done AND new.kind = 'download'
                BEGIN
                    INSERT OR IGNORE INTO owner_total (owner) VALUES (new.owner);
                    UPDATE owner_total SET bytes = \(changed("- \(counted("old.")) + \(counted("new."))"))
                    WHERE owner = new.owner;
                END;
                CREATE TRIGGER bytes_go AFTER DELETE ON task WHEN old.bytes_done > 0 AND old.kind = 'download'
                BEGIN
                    UPDATE owner_total SET bytes = \(changed("- \(counted("old."))")) WHERE owner = old.owner;
                END;

                CREATE INDEX task_over_quota ON task (owner, \(quotaNeed)) WHERE reason = 'quota';
                """)
    }
}
