import GRDB

extension Schema {
    /// Creates the tables of piece digests of tasks and of staged entries. A row takes at most half a megabyte, so the
    /// digests are in separate tables that are read for one task at a time.
    @Sendable static func createPieceHashes(_ database: Database) throws {
        let columns = """
            algorithm TEXT NOT NULL,
            length INTEGER NOT NULL,
            hashes BLOB NOT NULL
            """
        try database.execute(
            sql: """
                CREATE TABLE task_piece_hashes (
                    task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
                    \(columns)
                ) STRICT;

                CREATE TABLE staged_piece_hashes (
                    entry_id INTEGER PRIMARY KEY REFERENCES staged_entry (id) ON DELETE CASCADE,
                    \(columns)
                ) STRICT;
                """)
    }
}
