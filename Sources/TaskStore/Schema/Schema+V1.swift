import GRDB

extension Schema {
    /// Creates the tables of tasks (with secrets and resume data in separate tables), the journal, the store's identity
    /// and the staged sets.
    ///
    /// Times are milliseconds since 1970, priorities are ranks, and booleans are 0 and 1. A task's `specification`
    /// contains, as JSON, only the fields that have no column of their own, and is NULL if there are none.
    @Sendable static func createFirstTables(_ database: Database) throws {
        let entryColumns = """
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
        try database.execute(
            sql: """
                PRAGMA application_id = \(applicationID);

                CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

                CREATE TABLE task (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    \(entryColumns),
                    position INTEGER NOT NULL DEFAULT 0,
                    owner INTEGER NOT NULL,
                    bytes_done INTEGER NOT NULL DEFAULT 0,
                    bytes_total INTEGER,
                    bytes_fetched INTEGER NOT NULL DEFAULT 0,
                    attempts INTEGER NOT NULL DEFAULT 0,
                    failures INTEGER NOT NULL DEFAULT 0,
                    created_at INTEGER NOT NULL,
                    started_at INTEGER,
                    finished_at INTEGER,
                    error_code TEXT,
                    error_message TEXT,
                    http_status INTEGER,
                    verified INTEGER NOT NULL DEFAULT 0
                ) STRICT;

                CREATE TABLE task_secret (
                    task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
                    json TEXT NOT NULL
                ) STRICT;

                CREATE TABLE task_resume (
                    task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
                    data BLOB NOT NULL
                ) STRICT;

                CREATE TABLE event (
                    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
                    at INTEGER NOT NULL,
                    type TEXT NOT NULL,
                    task_id INTEGER NOT NULL,
                    owner INTEGER NOT NULL,
                    state TEXT NOT NULL,
                    reason TEXT,
                    error_code TEXT,
                    error_message TEXT,
                    http_status INTEGER
                ) STRICT;

                CREATE TABLE staged_set (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    owner INTEGER NOT NULL,
                    batch TEXT,
                    entries INTEGER NOT NULL DEFAULT 0
                ) STRICT;

                CREATE TABLE staged_entry (
                    id INTEGER PRIMARY KEY,
                    set_id INTEGER NOT NULL REFERENCES staged_set (id) ON DELETE CASCADE,
                    \(entryColumns),
                    secrets TEXT,
                    task_id INTEGER
                ) STRICT;

                -- The order in which ready tasks start; the host is there to pass over the tasks of a busy one.
                CREATE INDEX task_ready ON task (priority DESC, position, id, host) WHERE state = 'queued';
                CREATE INDEX task_waiting ON task (not_before) WHERE state = 'waiting' AND not_before IS NOT NULL;
                -- Lists by state in the order of ids, and counts without reading a row.
                CREATE INDEX task_state ON task (state, id, owner);
                CREATE UNIQUE INDEX task_key ON task (owner, key) WHERE key IS NOT NULL;
                -- Lists and counts by batch.
                CREATE INDEX task_batch ON task (batch, id, owner, state) WHERE batch IS NOT NULL;
                -- Finds the task that an entry of a queue file names without a key.
                CREATE INDEX task_entry ON task (batch, owner, url) WHERE batch IS NOT NULL;
                CREATE INDEX staged_entry_set ON staged_entry (set_id, id);
                """)
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        let identity = String(repeating: "0", count: 8 - digits.utf8.count) + digits
        try database.execute(sql: "INSERT INTO meta (name, value) VALUES ('identity', ?)", arguments: [identity])
    }
}
