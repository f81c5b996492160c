import GRDB

extension Schema {
    /// Adds the positions of webhooks in the journal.
    ///
    /// All events up to `position` are done: sent, given up or not for this receiver. `webhook_done` has those after it
    /// that are done. `given_up` counts the events that were given up, `given_up_at` to `given_up_error` describe the
    /// last one.
    @Sendable static func createWebhooks(_ database: Database) throws {
        try database.execute(
            sql: """
                CREATE TABLE webhook (
                    name TEXT PRIMARY KEY,
                    position INTEGER NOT NULL,
                    given_up INTEGER NOT NULL DEFAULT 0,
                    given_up_at INTEGER,
                    given_up_sequence INTEGER,
                    given_up_error TEXT
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE webhook_done (
                    webhook TEXT NOT NULL REFERENCES webhook (name) ON DELETE CASCADE,
                    sequence INTEGER NOT NULL,
                    PRIMARY KEY (webhook, sequence)
                ) STRICT, WITHOUT ROWID;
                """)
    }
}
