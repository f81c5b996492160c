import GRDB

extension Schema {
    /// Creates the table `flow` of the fair-share groups, with the number of their tasks in each state.
    ///
    /// A task's owner and batch determine its flow. A flow that belongs to a set (`set_id`) is hidden, with its tasks,
    /// until the set is committed, so that a million tasks become visible in one short transaction. Indexes contain
    /// hosts as fingerprints (``Fingerprint``). A task's `position` leaves room between neighbours for moving other
    /// tasks there. One row of the journal may stand for many tasks that were added together.
    @Sendable static func createFlows(_ database: Database) throws {
        database.add(
            function: DatabaseFunction("host_mark", argumentCount: 1) { values in
                String.fromDatabaseValue(values[0]).map(Fingerprint.ofHost)
            })
        database.add(
            function: DatabaseFunction("entry_mark", argumentCount: 4) { values in
                guard let kind = String.fromDatabaseValue(values[0]), let url = String.fromDatabaseValue(values[1])
                else { return nil }
                return Fingerprint.ofEntry(
                    kind: kind, url: url, urlFingerprint: Int64.fromDatabaseValue(values[2]),
                    output: String.fromDatabaseValue(values[3]))
            })
        defer {
            database.remove(function: DatabaseFunction("host_mark", argumentCount: 1) { _ in nil })
            database.remove(function: DatabaseFunction("entry_mark", argumentCount: 4) { _ in nil })
        }
        let states = ["queued", "waiting", "paused", "completed", "failed", "cancelled"]
        func counts(_ change: (_ state: String) -> String) -> String {
            states.map { "\($0) = \($0) \(change($0))" }.joined(separator: ", ")
        }
        let dropIfEmpty = """
            DELETE FROM flow WHERE id = old.flow AND \(states.joined(separator: " + ")) = 0
                AND NOT EXISTS (SELECT 1 FROM task WHERE flow = old.flow)
            """
        try database.execute(
            sql: """
                CREATE TABLE flow (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    owner INTEGER NOT NULL,
                    batch TEXT,
                    set_id INTEGER,
                    \(states.map { "\($0) INTEGER NOT NULL DEFAULT 0" }.joined(separator: ", "))
                ) STRICT;
                CREATE INDEX flow_owner ON flow (owner, batch, set_id);
                CREATE INDEX flow_batch ON flow (batch, owner) WHERE batch IS NOT NULL;
                CREATE INDEX flow_set ON flow (set_id) WHERE set_id IS NOT NULL;
                -- Those with something to start, for each owner in the order of their numbers.
                CREATE INDEX flow_ready ON flow (owner, id) WHERE queued > 0 AND set_id IS NULL;

                INSERT INTO flow (owner, batch, \(states.joined(separator: ", ")))
                SELECT owner, batch, \(states.map { "sum(state = '\($0)')" }.joined(separator: ", "))
                FROM task GROUP BY owner, batch;

                DROP INDEX task_ready;
                DROP INDEX task_state;
                DROP INDEX task_batch;
                DROP INDEX task_entry;
                ALTER TABLE task ADD COLUMN flow INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE task ADD COLUMN host_mark INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE task ADD COLUMN entry_mark INTEGER;
                UPDATE task SET host_mark = host_mark(host), position = id << \(QueuePosition.shift),
                    flow = (SELECT flow.id FROM flow WHERE flow.owner = task.owner AND flow.batch IS task.batch),
                    entry_mark = iif(batch IS NULL OR key IS NOT NULL, NULL, entry_mark(kind, url, url_mark, output));
                ALTER TABLE task DROP COLUMN host;
                ALTER TABLE task DROP COLUMN batch;

                DELETE FROM staged_set;
                ALTER TABLE staged_set ADD COLUMN is_dropped INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE staged_entry ADD COLUMN host_mark INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE staged_entry ADD COLUMN entry_mark INTEGER;
                ALTER TABLE staged_entry DROP COLUMN host;
                -- The tasks of a set that are in their places already: consecutive numbers that stand alike.
                CREATE TABLE staged_range (
                    set_id INTEGER NOT NULL REFERENCES staged_set (id) ON DELETE CASCADE,
                    first INTEGER NOT NULL,
                    last INTEGER NOT NULL,
                    state TEXT NOT NULL,
                    reason TEXT,
                    PRIMARY KEY (set_id, first)
                ) STRICT, WITHOUT ROWID;

                -- Numbers `sequence - count + 1` to `sequence`, of as many tasks from `task_id` on.
                ALTER TABLE event ADD COLUMN count INTEGER NOT NULL DEFAULT 1;

                -- The order in which a flow's ready tasks start; the host is there to pass over those of a busy one,
                -- the state
                -- so that no row is read for it.
                CREATE INDEX task_ready ON task (flow, priority DESC, position, id, host_mark, state)
                WHERE state = 'queued';
                -- A flow's ready tasks by host, for where those of busy ones are many.
                CREATE INDEX task_host ON task (flow, host_mark, priority DESC, position, id, state)
                WHERE state = 'queued';
                -- Lists by owner, batch and state in the order of ids.
                CREATE INDEX task_lane ON task (flow, state, id);
                -- Finds the task that an entry of a queue file names without a key.
                CREATE INDEX task_entry ON task (flow, entry_mark) WHERE entry_mark IS NOT NULL;

                CREATE TRIGGER task_moves AFTER UPDATE OF state ON task
                WHEN old.state <> new.state AND old.flow = new.flow
                BEGIN
                    UPDATE flow SET \(counts { "- (old.state = '\($0)') + (new.state = '\($0)')" }) WHERE id = new.flow;
                END;
                CREATE TRIGGER task_changes_flow AFTER UPDATE OF flow ON task WHEN old.flow <> new.flow
                BEGIN
                    UPDATE flow SET \(counts { "- (old.state = '\($0)')" }) WHERE id = old.flow;
                    UPDATE flow SET \(counts { "+ (new.state = '\($0)')" }) WHERE id = new.flow;
                    \(dropIfEmpty);
                END;
                CREATE TRIGGER task_goes AFTER DELETE ON task
                BEGIN
                    UPDATE flow SET \(counts { "- (old.state = '\($0)')" }) WHERE id = old.flow;
                    \(dropIfEmpty);
                END;
                """)
    }
}

/// The position of a task in the order of its flow.
enum QueuePosition {
    /// The exponent of the gap between neighbours: a new task's position is its id times 2 to this power.
    static let shift: Int64 = 20

    /// Returns the position of a new task, behind all existing ones.
    static func ofNew(_ id: Int64) -> Int64 { id << shift }
}
