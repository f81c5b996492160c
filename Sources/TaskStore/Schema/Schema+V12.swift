import GRDB

extension Schema {
    /// Adds what events tell of their tasks and batches.
    ///
    /// An event has the task's byte counts at its time. Other facts of the task are read from its row or, once it is
    /// removed, from `removed_task`, which is kept as long as the event of the removal. `owner_total.removed_bytes` is
    /// the sum of the lengths of that table's texts, and `flow.bytes_sum` the sum over the tasks of the flow.
    ///
    /// `journal_origin` has the journals that this one continues (see ``JournalIdentity``).
    ///
    /// An event of a batch has the task number 0, the batch's name in `batch` and the numbers of its tasks in `totals`,
    /// as JSON.
    @Sendable static func createEventFacts(_ database: Database) throws {
        let bytes = { (row: String) in
            "("
                + ["batch", "key", "url", "path"].map { "coalesce(length(CAST(\(row)\($0) AS BLOB)), 0)" }
                .joined(separator: " + ") + ")"
        }
        let counted = { (row: String) in "min(\(row)bytes_done, \(countedBytes))" }
        let add = { (table: String, column: String, terms: String, place: String) in
            """
            UPDATE \(table) SET \(column) = CAST(min(max(\(column) \(terms), 0), \(Int64.max)) AS INTEGER)
            WHERE \(place)
            """
        }
        try database.execute(
            sql: """
                ALTER TABLE event ADD COLUMN bytes_done INTEGER;
                ALTER TABLE event ADD COLUMN bytes_total INTEGER;
                ALTER TABLE event ADD COLUMN batch TEXT;
                ALTER TABLE event ADD COLUMN totals TEXT;

                CREATE TABLE removed_task (
                    task_id INTEGER PRIMARY KEY,
                    owner INTEGER NOT NULL,
                    kind TEXT NOT NULL,
                    batch TEXT,
                    key TEXT,
                    url TEXT NOT NULL,
                    path TEXT
                ) STRICT;
                ALTER TABLE owner_total ADD COLUMN removed_bytes INTEGER NOT NULL DEFAULT 0;
                CREATE TRIGGER removed_task_comes AFTER INSERT ON removed_task
                BEGIN
                    INSERT OR IGNORE INTO owner_total (owner) VALUES (new.owner);
                    \(add("owner_total", "removed_bytes", "+ \(bytes("new."))", "owner = new.owner"));
                END;
                CREATE TRIGGER removed_task_goes AFTER DELETE ON removed_task
                BEGIN \(add("owner_total", "removed_bytes", "- \(bytes("old."))", "owner = old.owner")); END;
                CREATE TRIGGER removal_goes AFTER DELETE ON event WHEN old.type = 'removed'
                BEGIN DELETE FROM removed_task WHERE task_id = old.task_id; END;

                CREATE TABLE journal_origin (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;

                ALTER TABLE flow ADD COLUMN bytes_sum INTEGER NOT NULL DEFAULT 0;
                UPDATE flow SET bytes_sum = found.bytes FROM (
                    SELECT flow AS id, CAST(min(total(\(counted(""))), \(Int64.max / 2)) AS INTEGER) AS bytes
                    FROM task WHERE bytes_done > 0 GROUP BY flow
                ) AS found WHERE found.id = flow.id;
                CREATE TRIGGER flow_bytes_change AFTER UPDATE OF bytes_done ON task
                WHEN old.bytes_done <> new.bytes_done AND old.flow = new.flow
                BEGIN
                    \(add("flow", "bytes_sum", "- \(counted("old.")) + \(counted("new."))", "id = new.flow"));
                END;
                CREATE TRIGGER flow_bytes_move AFTER UPDATE OF flow ON task
                WHEN old.flow <> new.flow AND (old.bytes_done > 0 OR new.bytes_done > 0)
                BEGIN
                    \(add("flow", "bytes_sum", "- \(counted("old."))", "id = old.flow"));
                    \(add("flow", "bytes_sum", "+ \(counted("new."))", "id = new.flow"));
                END;
                CREATE TRIGGER flow_bytes_go AFTER DELETE ON task WHEN old.bytes_done > 0
                BEGIN \(add("flow", "bytes_sum", "- \(counted("old."))", "id = old.flow")); END;
                """)
        try JournalIdentity.begin(in: database)
    }
}
