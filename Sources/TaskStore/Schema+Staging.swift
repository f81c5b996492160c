import GRDB

extension Schema {
    /// The columns of an entry, which `task` and `staged_entry` share.
    static let entryColumns = """
        kind TEXT NOT NULL,
        url TEXT NOT NULL,
        url_mark INTEGER,
        output TEXT,
        directory TEXT,
        priority INTEGER NOT NULL,
        batch TEXT,
        key TEXT,
        specification TEXT,
        host TEXT NOT NULL,
        path TEXT,
        state TEXT NOT NULL CHECK (state <> 'active'),
        reason TEXT,
        not_before INTEGER
        """

    /// The sets that are being put together, which live no longer than the connection that writes: SQLite keeps them
    /// in memory, and in a file of no name what does not fit there. No log and no sync is spent on them.
    static func createStagingTables(_ database: Database) throws {
        try database.execute(
            sql: """
                PRAGMA temp.cache_size = -8192;

                CREATE TEMP TABLE staged_set (
                    id INTEGER PRIMARY KEY,
                    owner INTEGER NOT NULL,
                    batch TEXT,
                    entries INTEGER NOT NULL DEFAULT 0
                ) STRICT;

                CREATE TEMP TABLE staged_entry (
                    set_id INTEGER NOT NULL,
                    number INTEGER NOT NULL,
                    \(entryColumns),
                    secrets TEXT,
                    task_id INTEGER,
                    PRIMARY KEY (set_id, number)
                ) STRICT, WITHOUT ROWID;
                """)
    }
}
