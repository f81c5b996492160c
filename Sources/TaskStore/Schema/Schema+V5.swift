import GRDB

extension Schema {
    /// Creates the table that identifies the entries of queue files whose completed tasks were removed from the
    /// history, so that applying a file again does not download them again.
    @Sendable static func createPastEntries(_ database: Database) throws {
        try database.execute(
            sql: """
                CREATE TABLE past_entry (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    owner INTEGER NOT NULL,
                    batch TEXT NOT NULL,
                    key TEXT,
                    entry_mark INTEGER,
                    kind TEXT NOT NULL,
                    url TEXT NOT NULL,
                    url_mark INTEGER,
                    output TEXT
                ) STRICT;
                CREATE INDEX past_entry_mark ON past_entry (owner, batch, entry_mark);
                CREATE INDEX past_entry_key ON past_entry (owner, key) WHERE key IS NOT NULL;
                """)
    }
}
