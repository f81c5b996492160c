import GRDB

extension Schema {
    /// Creates the tables, indexes and triggers of the first version.
    ///
    /// Times are milliseconds since 1970, priorities are ranks, owners are uids, and booleans are 0 and 1. A
    /// fingerprint is a number in place of a long text (``Fingerprint``).
    @Sendable static func createTables(_ database: Database) throws {
        try database.execute(sql: "PRAGMA application_id = \(applicationID)")
        for sql in [store, tasks, groups, dependencies, stagedBatches, events, history, webhooks, ownerTotals] {
            try database.execute(sql: sql)
        }
    }

    // MARK: Expressions

    /// The maximum number of bytes counted for one task. With a million tasks, the sum still fits into an integer of
    /// SQLite. The limit is needed because a file created by a user and found by a task in its place may have any
    /// apparent size.
    static let countedBytes: Int64 = 1 << 43

    /// The SQL expression for the number of bytes that a task still needs: -1 if unknown and the task was started, 0 if
    /// unknown and it was not started.
    static let quotaNeed =
        "iif(bytes_total IS NULL, iif(started_at IS NULL, 0, -1), max(bytes_total - bytes_done, 0))"

    /// Returns an SQL assignment that adds `terms` to a sum of bytes, clamped to SQLite's range of integers.
    static func adding(_ terms: String, to column: String) -> String {
        "\(column) = CAST(min(max(\(column) \(terms), 0), \(Int64.max)) AS INTEGER)"
    }

    /// Returns an SQL expression for the number of bytes of a text or a blob.
    private static func length(_ value: String) -> String { "coalesce(length(CAST(\(value) AS BLOB)), 0)" }

    /// Returns an SQL expression for the number of bytes in columns of the row `old` or `new`.
    private static func lengths(_ columns: [String], of row: String) -> String {
        "(" + columns.map { length("\(row).\($0)") }.joined(separator: " + ") + ")"
    }

    /// Returns an SQL expression for the bytes on disk that count for the row `old` or `new` of `task`.
    private static func counted(_ row: String) -> String { "min(\(row).bytes_done, \(countedBytes))" }

    // MARK: The store

    /// The statement of triggers that delete secrets. A conflict clause would not count where the statement that fires
    /// the trigger has one.
    private static let noteErasure =
        "INSERT INTO pending_erasure (id) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pending_erasure)"

    private static let store = """
        -- Values that belong to the whole store. The identity is a part of the names of part files; the journal is the
        -- name of the journal of events.
        CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
        INSERT INTO meta (name, value)
        VALUES ('identity', lower(hex(randomblob(4)))), ('journal', lower(hex(randomblob(8))));

        -- Has a row while the write-ahead log may contain secrets that were deleted.
        CREATE TABLE pending_erasure (id INTEGER PRIMARY KEY CHECK (id = 1)) STRICT;
        """

    // MARK: Tasks

    /// The columns that a task has in common with an entry that may become one. `specification` contains, as JSON, only
    /// the fields that have no column of their own, and is NULL if there are none.
    ///
    /// `url` contains no secrets; `url_fingerprint` tells URLs apart that differ only in these. `entry_fingerprint`
    /// finds the task that an entry of a queue file names without a key.
    private static let entryColumns = """
        kind TEXT NOT NULL,
            url TEXT NOT NULL,
            url_fingerprint INTEGER,
            output TEXT,
            directory TEXT,
            priority INTEGER NOT NULL,
            key TEXT,
            specification TEXT,
            host_fingerprint INTEGER NOT NULL,
            entry_fingerprint INTEGER,
            path TEXT,
            state TEXT NOT NULL CHECK (state <> 'active'),
            reason TEXT,
            not_before INTEGER
        """

    private static let pieceHashColumns = "algorithm TEXT NOT NULL, length INTEGER NOT NULL, hashes BLOB NOT NULL"

    private static let tasks = """
        -- The tasks. An active task is stored as queued.
        CREATE TABLE task (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            owner INTEGER NOT NULL,
            -- The group of the task's owner and batch.
            group_id INTEGER NOT NULL,
            -- The order in the group, with room between neighbours for moving other tasks there.
            position INTEGER NOT NULL,
            \(entryColumns),
            -- The pauses that are in force (TaskPauses); 0 for a task that is paused since it was added.
            pauses INTEGER NOT NULL DEFAULT 0,
            bytes_done INTEGER NOT NULL DEFAULT 0,
            bytes_total INTEGER,
            bytes_fetched INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0,
            -- The failures in a row.
            failures INTEGER NOT NULL DEFAULT 0,
            -- The number of retries after the completion.
            round INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            finished_at INTEGER,
            error_code TEXT,
            error_message TEXT,
            http_status INTEGER,
            verified INTEGER NOT NULL DEFAULT 0,
            -- The checksum that a list of digests or a Metalink gave for the file.
            found_checksum TEXT,
            -- The bytes of the task's secrets, resume data and piece digests. They are kept here because those rows are
            -- deleted after the row that names their owner.
            attached_bytes INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE INDEX task_waiting ON task (not_before) WHERE state = 'waiting' AND not_before IS NOT NULL;
        CREATE UNIQUE INDEX task_key ON task (owner, key) WHERE key IS NOT NULL;
        -- The order in which a group's ready tasks start. The host is there to pass over the tasks of a busy one, the
        -- state so that no row is read for it.
        CREATE INDEX task_ready ON task (group_id, priority DESC, position, id, host_fingerprint, state)
        WHERE state = 'queued';
        -- A group's ready tasks by host, for groups where those of busy hosts are many.
        CREATE INDEX task_host ON task (group_id, host_fingerprint, priority DESC, position, id, state)
        WHERE state = 'queued';
        -- Lists by owner, batch and state in the order of ids.
        CREATE INDEX task_state ON task (group_id, state, id);
        CREATE INDEX task_entry ON task (group_id, entry_fingerprint) WHERE entry_fingerprint IS NOT NULL;
        CREATE INDEX task_ended ON task (owner, finished_at) WHERE finished_at IS NOT NULL;
        CREATE INDEX task_over_quota ON task (owner, \(quotaNeed)) WHERE reason = 'quota';
        -- Counts the tasks by kind without reading all of them.
        CREATE INDEX task_upload ON task (group_id, state) WHERE kind = 'upload';

        -- The secrets of tasks as JSON, so that no list of tasks reads them.
        CREATE TABLE task_secret (
            task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
            json TEXT NOT NULL
        ) STRICT;
        CREATE TRIGGER task_secret_goes AFTER DELETE ON task_secret
        BEGIN \(noteErasure); END;
        CREATE TRIGGER task_secret_changes AFTER UPDATE ON task_secret
        BEGIN \(noteErasure); END;

        -- What the engine needs to resume a task.
        CREATE TABLE task_resume (
            task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
            data BLOB NOT NULL
        ) STRICT;

        -- The digests of pieces, of up to half a megabyte. They are read for one task at a time.
        CREATE TABLE task_piece_hashes (
            task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
            \(pieceHashColumns)
        ) STRICT;

        -- The last attempts of tasks. The number grows with each attempt of a task. The times of steps are milliseconds
        -- from the start of the attempt.
        CREATE TABLE task_attempt (
            task_id INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            ended_at INTEGER,
            address TEXT,
            bytes INTEGER NOT NULL,
            name_ms INTEGER,
            connect_ms INTEGER,
            tls_ms INTEGER,
            first_byte_ms INTEGER,
            http_version TEXT,
            response_status INTEGER,
            error_code TEXT,
            error_message TEXT,
            http_status INTEGER,
            warning TEXT,
            note TEXT,
            PRIMARY KEY (task_id, number)
        ) STRICT, WITHOUT ROWID;

        -- The delays that hosts requested in their answers to tasks (Retry-After).
        CREATE TABLE host_hold (
            task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
            held_until INTEGER NOT NULL
        ) STRICT;
        """

    // MARK: Fair-share groups

    /// Returns the assignments that change the number of tasks in each state.
    private static func counts(_ change: (_ isState: String) -> String) -> String {
        ["queued", "waiting", "paused", "completed", "failed", "cancelled"]
            .map { "\($0) = \($0) \(change("state = '\($0)'"))" }.joined(separator: ", ")
    }

    /// The statements that take a task out of its former group.
    private static let countRemoved = """
        UPDATE fair_share_group SET \(counts { "- (old.\($0))" }) WHERE id = old.group_id;
            DELETE FROM fair_share_group WHERE id = old.group_id
                AND queued + waiting + paused + completed + failed + cancelled = 0
                AND NOT EXISTS (SELECT 1 FROM task WHERE group_id = old.group_id)
        """

    /// Triggers do not count added tasks: the code that inserts them must do it.
    private static let groups = """
        -- The owners and batches of tasks, with the number of tasks in each state and the sum of their bytes_done.
        -- A group of a staged batch is hidden, with its tasks, until that batch is committed, so that a million tasks
        -- become visible in one short transaction.
        CREATE TABLE fair_share_group (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            owner INTEGER NOT NULL,
            batch TEXT,
            staged_batch_id INTEGER,
            queued INTEGER NOT NULL DEFAULT 0,
            waiting INTEGER NOT NULL DEFAULT 0,
            paused INTEGER NOT NULL DEFAULT 0,
            completed INTEGER NOT NULL DEFAULT 0,
            failed INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0,
            bytes_sum INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE INDEX fair_share_group_owner ON fair_share_group (owner, batch, staged_batch_id);
        CREATE INDEX fair_share_group_batch ON fair_share_group (batch, owner) WHERE batch IS NOT NULL;
        CREATE INDEX fair_share_group_staged_batch ON fair_share_group (staged_batch_id)
        WHERE staged_batch_id IS NOT NULL;
        -- The groups with something to start, for each owner in the order of their numbers.
        CREATE INDEX fair_share_group_ready ON fair_share_group (owner, id)
        WHERE queued > 0 AND staged_batch_id IS NULL;

        -- The counts follow each change of a task. A group without tasks is removed.
        CREATE TRIGGER task_state_changes AFTER UPDATE OF state ON task
        WHEN old.state <> new.state AND old.group_id = new.group_id
        BEGIN
            UPDATE fair_share_group SET \(counts { "- (old.\($0)) + (new.\($0))" }) WHERE id = new.group_id;
        END;
        CREATE TRIGGER task_group_changes AFTER UPDATE OF group_id ON task WHEN old.group_id <> new.group_id
        BEGIN
            UPDATE fair_share_group SET \(counts { "+ (new.\($0))" }) WHERE id = new.group_id;
            \(countRemoved);
        END;
        CREATE TRIGGER task_goes AFTER DELETE ON task
        BEGIN
            \(countRemoved);
        END;

        -- So does the sum of bytes.
        CREATE TRIGGER group_bytes_change AFTER UPDATE OF bytes_done ON task
        WHEN old.bytes_done <> new.bytes_done AND old.group_id = new.group_id
        BEGIN
            UPDATE fair_share_group SET \(adding("- \(counted("old")) + \(counted("new"))", to: "bytes_sum"))
            WHERE id = new.group_id;
        END;
        CREATE TRIGGER group_bytes_move AFTER UPDATE OF group_id ON task
        WHEN old.group_id <> new.group_id AND (old.bytes_done > 0 OR new.bytes_done > 0)
        BEGIN
            UPDATE fair_share_group SET \(adding("- \(counted("old"))", to: "bytes_sum")) WHERE id = old.group_id;
            UPDATE fair_share_group SET \(adding("+ \(counted("new"))", to: "bytes_sum")) WHERE id = new.group_id;
        END;
        CREATE TRIGGER group_bytes_go AFTER DELETE ON task WHEN old.bytes_done > 0
        BEGIN
            UPDATE fair_share_group SET \(adding("- \(counted("old"))", to: "bytes_sum")) WHERE id = old.group_id;
        END;
        """

    // MARK: Dependencies

    private static let ended = "('completed', 'failed', 'cancelled')"

    private static let dependencies = """
        -- The tasks that wait for the end of another task.
        CREATE TABLE task_dependency (
            task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
            after_task INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX task_dependency_after ON task_dependency (after_task, task_id);

        -- The tasks that have ended or were removed, and whose dependents are to be settled. This is done in separate
        -- commits, because there may be many of them.
        CREATE TABLE ended_dependency (after_task INTEGER PRIMARY KEY) STRICT;

        -- A dependency is recorded there when it ends, is removed, or is added after that.
        CREATE TRIGGER dependency_comes AFTER INSERT ON task_dependency
        WHEN NOT EXISTS (SELECT 1 FROM task WHERE id = new.after_task AND state NOT IN \(ended))
        BEGIN INSERT OR IGNORE INTO ended_dependency (after_task) VALUES (new.after_task); END;
        CREATE TRIGGER dependency_ends AFTER UPDATE OF state ON task
        WHEN new.state IN \(ended) AND EXISTS (SELECT 1 FROM task_dependency WHERE after_task = new.id)
        BEGIN INSERT OR IGNORE INTO ended_dependency (after_task) VALUES (new.id); END;
        CREATE TRIGGER dependency_goes AFTER DELETE ON task
        WHEN EXISTS (SELECT 1 FROM task_dependency WHERE after_task = old.id)
        BEGIN INSERT OR IGNORE INTO ended_dependency (after_task) VALUES (old.id); END;
        """

    // MARK: Staged batches

    private static let stagedBatches = """
        -- The staged batches: entries that are applied together. The data of one that is dropped is deleted in parts.
        CREATE TABLE staged_batch (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            owner INTEGER NOT NULL,
            batch TEXT,
            -- The number of entries, and the bytes of those in staged_entry.
            entries INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            is_dropped INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        -- The entries that are compared with tasks at the commit. The task is the one that an entry changes.
        CREATE TABLE staged_entry (
            id INTEGER PRIMARY KEY,
            staged_batch_id INTEGER NOT NULL REFERENCES staged_batch (id) ON DELETE CASCADE,
            batch TEXT,
            \(entryColumns),
            secrets TEXT,
            task_id INTEGER
        ) STRICT;
        CREATE INDEX staged_entry_batch ON staged_entry (staged_batch_id, id);
        CREATE TRIGGER staged_secret_goes AFTER DELETE ON staged_entry WHEN old.secrets IS NOT NULL
        BEGIN \(noteErasure); END;

        CREATE TABLE staged_piece_hashes (
            entry_id INTEGER PRIMARY KEY REFERENCES staged_entry (id) ON DELETE CASCADE,
            \(pieceHashColumns)
        ) STRICT;

        -- The entries that are hidden tasks already: consecutive tasks with the same state and reason.
        CREATE TABLE staged_task_range (
            staged_batch_id INTEGER NOT NULL REFERENCES staged_batch (id) ON DELETE CASCADE,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            state TEXT NOT NULL,
            reason TEXT,
            PRIMARY KEY (staged_batch_id, first)
        ) STRICT, WITHOUT ROWID;
        """

    // MARK: Events

    private static let events = """
        -- The journal of events. A row has the numbers `sequence - count + 1` to `sequence`, of as many tasks that were
        -- added together, from `task_id` on. The bytes are those of the task at the time of the event. An event of a
        -- batch has the task number 0, the batch's name and the numbers of its tasks in `totals`, as JSON.
        CREATE TABLE event (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            count INTEGER NOT NULL DEFAULT 1,
            at INTEGER NOT NULL,
            type TEXT NOT NULL,
            task_id INTEGER NOT NULL,
            owner INTEGER NOT NULL,
            state TEXT NOT NULL,
            reason TEXT,
            error_code TEXT,
            error_message TEXT,
            http_status INTEGER,
            bytes_done INTEGER,
            bytes_total INTEGER,
            batch TEXT,
            totals TEXT
        ) STRICT;
        CREATE INDEX event_owner ON event (owner, sequence);

        -- What events tell of a task after its removal, for as long as the event of the removal is kept.
        CREATE TABLE removed_task (
            task_id INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            kind TEXT NOT NULL,
            batch TEXT,
            key TEXT,
            url TEXT NOT NULL,
            path TEXT
        ) STRICT;
        CREATE TRIGGER removal_goes AFTER DELETE ON event WHEN old.type = 'removed'
        BEGIN DELETE FROM removed_task WHERE task_id = old.task_id; END;

        -- The journals that this one continues, with the last event in common. The number is the order in which they
        -- ended (JournalIdentity).
        CREATE TABLE journal_origin (
            name TEXT PRIMARY KEY,
            last INTEGER NOT NULL,
            number INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    // MARK: History

    private static let history = """
        -- The entries of queue files whose completed tasks were removed from the history, so that applying a file again
        -- does not download them again.
        CREATE TABLE past_entry (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            owner INTEGER NOT NULL,
            batch TEXT NOT NULL,
            key TEXT,
            entry_fingerprint INTEGER,
            kind TEXT NOT NULL,
            url TEXT NOT NULL,
            url_fingerprint INTEGER,
            output TEXT
        ) STRICT;
        CREATE INDEX past_entry_fingerprint ON past_entry (owner, batch, entry_fingerprint);
        CREATE INDEX past_entry_key ON past_entry (owner, key) WHERE key IS NOT NULL;
        CREATE INDEX past_entry_owner ON past_entry (owner, id);
        """

    // MARK: Webhooks

    private static let webhooks = """
        -- The receivers of events. All events up to `position` were read: they are done, pending or deferred.
        -- `given_up_count` counts the events that were given up, `given_up_at` to `given_up_error` describe the last.
        CREATE TABLE webhook (
            name TEXT PRIMARY KEY,
            position INTEGER NOT NULL,
            given_up_count INTEGER NOT NULL DEFAULT 0,
            given_up_at INTEGER,
            given_up_sequence INTEGER,
            given_up_error TEXT
        ) STRICT, WITHOUT ROWID;

        -- The events that were read and are not done. Their number is limited, however long a single event fails.
        CREATE TABLE webhook_pending (
            webhook TEXT NOT NULL REFERENCES webhook (name) ON DELETE CASCADE,
            sequence INTEGER NOT NULL,
            PRIMARY KEY (webhook, sequence)
        ) STRICT, WITHOUT ROWID;

        -- The positions from which the events of some owners are still to be read.
        CREATE TABLE webhook_deferred (
            webhook TEXT NOT NULL REFERENCES webhook (name) ON DELETE CASCADE,
            owner INTEGER NOT NULL,
            position INTEGER NOT NULL,
            PRIMARY KEY (webhook, owner)
        ) STRICT, WITHOUT ROWID;
        """

    // MARK: Totals of owners

    /// The columns of `task` that contain texts of any length.
    private static let recordTexts = ["url", "output", "directory", "key", "specification", "path", "error_message"]

    /// Returns an SQL expression for the size in bytes of the record of a task, the row `old` or `new`.
    private static func recordBytes(_ row: String) -> String {
        "(\(lengths(recordTexts, of: row)) + \(row).attached_bytes)"
    }

    private static func pastEntryBytes(_ row: String) -> String { lengths(["batch", "key", "url", "output"], of: row) }

    private static func removedTaskBytes(_ row: String) -> String { lengths(["batch", "key", "url", "path"], of: row) }

    /// Returns the triggers that keep `task.attached_bytes` for the rows of another table.
    private static func attachedBytes(_ table: String, _ column: String) -> String {
        let (old, new) = (length("old.\(column)"), length("new.\(column)"))
        func add(_ terms: String, of row: String) -> String {
            "UPDATE task SET attached_bytes = max(attached_bytes \(terms), 0) WHERE id = \(row).task_id"
        }
        return """
            CREATE TRIGGER \(table)_bytes_come AFTER INSERT ON \(table)
            BEGIN \(add("+ \(new)", of: "new")); END;
            CREATE TRIGGER \(table)_bytes_change AFTER UPDATE OF \(column) ON \(table) WHEN \(old) <> \(new)
            BEGIN \(add("- \(old) + \(new)", of: "new")); END;
            CREATE TRIGGER \(table)_bytes_go AFTER DELETE ON \(table)
            BEGIN \(add("- \(old)", of: "old")); END;
            """
    }

    /// Triggers do not cover added tasks: they have no bytes on disk, and the code that inserts them must add the size
    /// of their records.
    private static let ownerTotals = """
        -- What each owner has, by which limits and shares are determined without counting.
        CREATE TABLE owner_total (
            owner INTEGER PRIMARY KEY,
            -- The number of events in the journal, of which a row may have many.
            events INTEGER NOT NULL DEFAULT 0,
            -- The largest sequence number of the events that were removed from the journal.
            last_trimmed_event INTEGER NOT NULL DEFAULT 0,
            -- The bytes on disk of the owner's downloads, as part files or complete files.
            kept_bytes INTEGER NOT NULL DEFAULT 0,
            -- The size of the records of the owner's tasks.
            record_bytes INTEGER NOT NULL DEFAULT 0,
            -- The number and the size of the rows in past_entry, and the size of those in removed_task.
            past_entries INTEGER NOT NULL DEFAULT 0,
            past_entry_bytes INTEGER NOT NULL DEFAULT 0,
            removed_task_bytes INTEGER NOT NULL DEFAULT 0
        ) STRICT;

        CREATE TRIGGER event_comes AFTER INSERT ON event
        BEGIN
            INSERT INTO owner_total (owner, events) VALUES (new.owner, new.count)
            ON CONFLICT (owner) DO UPDATE SET events = events + excluded.events;
        END;
        CREATE TRIGGER event_goes AFTER DELETE ON event
        BEGIN
            UPDATE owner_total
            SET events = events - old.count, last_trimmed_event = max(last_trimmed_event, old.sequence)
            WHERE owner = old.owner;
        END;

        CREATE TRIGGER kept_bytes_change AFTER UPDATE OF bytes_done ON task
        WHEN old.bytes_done <> new.bytes_done AND new.kind = 'download'
        BEGIN
            INSERT OR IGNORE INTO owner_total (owner) VALUES (new.owner);
            UPDATE owner_total SET \(adding("- \(counted("old")) + \(counted("new"))", to: "kept_bytes"))
            WHERE owner = new.owner;
        END;
        CREATE TRIGGER kept_bytes_go AFTER DELETE ON task WHEN old.bytes_done > 0 AND old.kind = 'download'
        BEGIN
            UPDATE owner_total SET \(adding("- \(counted("old"))", to: "kept_bytes")) WHERE owner = old.owner;
        END;

        \(attachedBytes("task_secret", "json"))
        \(attachedBytes("task_resume", "data"))
        \(attachedBytes("task_piece_hashes", "hashes"))
        CREATE TRIGGER record_bytes_change
        AFTER UPDATE OF \(recordTexts.joined(separator: ", ")), attached_bytes ON task
        WHEN \(recordBytes("old")) <> \(recordBytes("new"))
        BEGIN
            UPDATE owner_total
            SET \(adding("- \(recordBytes("old")) + \(recordBytes("new"))", to: "record_bytes"))
            WHERE owner = new.owner;
        END;
        CREATE TRIGGER record_bytes_go AFTER DELETE ON task
        BEGIN
            UPDATE owner_total SET \(adding("- \(recordBytes("old"))", to: "record_bytes")) WHERE owner = old.owner;
        END;

        CREATE TRIGGER past_entry_comes AFTER INSERT ON past_entry
        BEGIN
            INSERT OR IGNORE INTO owner_total (owner) VALUES (new.owner);
            UPDATE owner_total
            SET past_entries = past_entries + 1, \(adding("+ \(pastEntryBytes("new"))", to: "past_entry_bytes"))
            WHERE owner = new.owner;
        END;
        CREATE TRIGGER past_entry_goes AFTER DELETE ON past_entry
        BEGIN
            UPDATE owner_total
            SET past_entries = past_entries - 1, \(adding("- \(pastEntryBytes("old"))", to: "past_entry_bytes"))
            WHERE owner = old.owner;
        END;

        CREATE TRIGGER removed_task_comes AFTER INSERT ON removed_task
        BEGIN
            INSERT OR IGNORE INTO owner_total (owner) VALUES (new.owner);
            UPDATE owner_total SET \(adding("+ \(removedTaskBytes("new"))", to: "removed_task_bytes"))
            WHERE owner = new.owner;
        END;
        CREATE TRIGGER removed_task_goes AFTER DELETE ON removed_task
        BEGIN
            UPDATE owner_total SET \(adding("- \(removedTaskBytes("old"))", to: "removed_task_bytes"))
            WHERE owner = old.owner;
        END;
        """
}
