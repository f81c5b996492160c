import GRDB

extension Schema {
    /// Creates the holds of hosts, and the record that secrets were deleted that the write-ahead log still contains.
    @Sendable static func createHoldsAndErasures(_ database: Database) throws {
        let note = "INSERT INTO erasure (id) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM erasure)"
        try database.execute(
            sql: """
                CREATE TABLE host_hold (
                    mark INTEGER PRIMARY KEY,
                    host TEXT NOT NULL,
                    held_until INTEGER NOT NULL
                ) STRICT;

                CREATE TABLE erasure (id INTEGER PRIMARY KEY CHECK (id = 1)) STRICT;
                CREATE TRIGGER secret_goes AFTER DELETE ON task_secret BEGIN \(note); END;
                CREATE TRIGGER secret_changes AFTER UPDATE ON task_secret BEGIN \(note); END;
                CREATE TRIGGER staged_secret_goes AFTER DELETE ON staged_entry WHEN old.secrets IS NOT NULL
                BEGIN \(note); END;
                """)
    }
}
