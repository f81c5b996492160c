import GRDB

extension Schema {
    /// The largest size that counts of one task: with a million tasks the sum still is a number of SQLite's. A file that a
    /// user made herself, which a task found in its place, may be said to be of any size.
    static let countedBytes: Int64 = 1 << 43

    /// Bytes that a task still needs: -1 where nobody knows and it was begun, 0 where it was not.
    static let quotaNeed =
        "iif(bytes_total IS NULL, iif(started_at IS NULL, 0, -1), max(bytes_total - bytes_done, 0))"

    /// Bytes that each owner's downloads take up, kept with every task, and what waits until there are fewer of them.
    ///
    /// `owner_total.bytes` is the sum over the owner's downloads of what is there of each, part or whole file. A task comes
    /// with nothing, so that no trigger looks at those that are added.
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
