import GRDB

extension Schema {
    /// Creates the dependencies between tasks, and an index of ended tasks by the time of their end.
    ///
    /// The dependents of a task that has ended or was removed are settled in separate commits, because there may be
    /// many of them. `settled_dependency` contains the tasks whose dependents must be processed.
    @Sendable static func createDependencies(_ database: Database) throws {
        let ended = "('completed', 'failed', 'cancelled')"
        let note = "INSERT OR IGNORE INTO settled_dependency (after_task) VALUES"
        try database.execute(
            sql: """
                CREATE TABLE task_dependency (
                    task_id INTEGER PRIMARY KEY REFERENCES task (id) ON DELETE CASCADE,
                    after_task INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX task_dependency_after ON task_dependency (after_task, task_id);
                CREATE TABLE settled_dependency (after_task INTEGER PRIMARY KEY) STRICT;

                CREATE TRIGGER dependency_comes AFTER INSERT ON task_dependency
                WHEN NOT EXISTS (SELECT 1 FROM task WHERE id = new.after_task AND state NOT IN \(ended))
                BEGIN \(note) (new.after_task); END;
                CREATE TRIGGER task_ends AFTER UPDATE OF state ON task
                WHEN new.state IN \(ended) AND EXISTS (SELECT 1 FROM task_dependency WHERE after_task = new.id)
                BEGIN \(note) (new.id); END;
                CREATE TRIGGER task_is_gone AFTER DELETE ON task
                WHEN EXISTS (SELECT 1 FROM task_dependency WHERE after_task = old.id)
                BEGIN \(note) (old.id); END;

                CREATE INDEX task_finished ON task (finished_at) WHERE finished_at IS NOT NULL;
                """)
    }
}
