import GRDB

extension Schema {
    /// The columns of `task` that contain texts of any length.
    private static let textColumns = ["url", "output", "directory", "key", "specification", "path", "error_message"]

    private static func length(_ value: String) -> String { "coalesce(length(CAST(\(value) AS BLOB)), 0)" }

    /// Returns an SQL expression for the size of a task's record in bytes: its texts, and its data in other tables.
    private static func recordBytes(_ row: String = "") -> String {
        "(" + (textColumns.map { length(row + $0) } + ["\(row)side_bytes"]).joined(separator: " + ") + ")"
    }

    /// Returns an SQL expression for `owner_total.records` with `terms` added, clamped to SQLite's range of integers.
    static func changedRecords(_ terms: String) -> String {
        "CAST(min(max(records \(terms), 0), \(Int64.max)) AS INTEGER)"
    }

    /// Adds the size in bytes of each owner's task records, maintained with every change of a task.
    ///
    /// `owner_total.records` is the sum. Triggers do not cover added tasks: the code that inserts tasks must add their
    /// size. `task.side_bytes` is the size of a task's secrets, resume data and piece digests. It is stored in the
    /// task's row because those rows are deleted after the row that names their owner. `staged_set.bytes` is the total
    /// size of the staged data.
    @Sendable static func createOwnerRecords(_ database: Database) throws {
        let sides = [("task_secret", "json"), ("task_resume", "data"), ("task_piece_hashes", "hashes")]
        let sideSums = sides.map { table, column in
            "coalesce((SELECT \(length(column)) FROM \(table) WHERE task_id = task.id), 0)"
        }
        let sideTasks = sides.map { table, _ in "SELECT task_id FROM \(table)" }
        let sideTriggers = sides.map { table, column in
            let change = { (terms: String, row: String) in
                "UPDATE task SET side_bytes = max(side_bytes \(terms), 0) WHERE id = \(row).task_id"
            }
            let (old, new) = (length("old.\(column)"), length("new.\(column)"))
            return """
                CREATE TRIGGER \(table)_bytes_come AFTER INSERT ON \(table)
                BEGIN \(change("+ \(new)", "new")); END;
                CREATE TRIGGER \(table)_bytes_change AFTER UPDATE OF \(column) ON \(table) WHEN \(old) <> \(new)
                BEGIN \(change("- \(old) + \(new)", "new")); END;
                CREATE TRIGGER \(table)_bytes_go AFTER DELETE ON \(table)
                BEGIN \(change("- \(old)", "old")); END;
                """
        }
        try database.execute(
            sql: """
                ALTER TABLE staged_set ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE task ADD COLUMN side_bytes INTEGER NOT NULL DEFAULT 0;
                UPDATE task SET side_bytes = \(sideSums.joined(separator: " + "))
                WHERE id IN (\(sideTasks.joined(separator: " UNION ")));

                ALTER TABLE owner_total ADD COLUMN records INTEGER NOT NULL DEFAULT 0;
                INSERT INTO owner_total (owner, records) SELECT owner, sum(\(recordBytes())) FROM task GROUP BY owner
                ON CONFLICT (owner) DO UPDATE SET records = excluded.records;

                \(sideTriggers.joined(separator: "\n"))
                CREATE TRIGGER record_changes AFTER UPDATE OF \(textColumns.joined(separator: ", ")), side_bytes ON task
                WHEN \(recordBytes("old.")) <> \(recordBytes("new."))
                BEGIN
                    UPDATE owner_total
                    SET records = \(changedRecords("- \(recordBytes("old.")) + \(recordBytes("new."))"))
                    WHERE owner = new.owner;
                END;
                CREATE TRIGGER record_goes AFTER DELETE ON task
                BEGIN
                    UPDATE owner_total SET records = \(changedRecords("- \(recordBytes("old."))"))
                    WHERE owner = old.owner;
                END;
                """)
    }
}
