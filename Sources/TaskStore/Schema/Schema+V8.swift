import GRDB

extension Schema {
    /// Adds counts of each owner's events and past entries, so that one owner's do not displace another's.
    ///
    /// `owner_total` has a row for each uid that ever had an event. The row of the unused uid −1 contains the largest
    /// sequence number of the events that were removed before this migration.
    @Sendable static func createOwnerTotals(_ database: Database) throws {
        try database.execute(
            sql: """
                DROP INDEX task_finished;
                CREATE INDEX task_ended ON task (owner, finished_at) WHERE finished_at IS NOT NULL;

                CREATE TABLE owner_total (
                    owner INTEGER PRIMARY KEY,
                    -- Numbers, of which one row of the journal may have many.
                    events INTEGER NOT NULL DEFAULT 0,
                    -- The largest of those that were let go of.
                    events_gone INTEGER NOT NULL DEFAULT 0,
                    past_entries INTEGER NOT NULL DEFAULT 0
                ) STRICT;
                INSERT INTO owner_total (owner, events) SELECT owner, sum(count) FROM event GROUP BY owner;
                INSERT INTO owner_total (owner, events_gone) SELECT -1, coalesce(
                    (SELECT sequence - count FROM event ORDER BY sequence LIMIT 1),
                    (SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0);
                INSERT INTO owner_total (owner, past_entries) SELECT owner, count(*) FROM past_entry GROUP BY owner
                ON CONFLICT (owner) DO UPDATE SET past_entries = excluded.past_entries;

                CREATE INDEX event_owner ON event (owner, sequence);
                CREATE TRIGGER event_comes AFTER INSERT ON event
                BEGIN
                    INSERT INTO owner_total (owner, events) VALUES (new.owner, new.count)
                    ON CONFLICT (owner) DO UPDATE SET events = events + excluded.events;
                END;
                CREATE TRIGGER event_goes AFTER DELETE ON event
                BEGIN
                    UPDATE owner_total SET events = events - old.count, events_gone = max(events_gone, old.sequence)
                    WHERE owner = old.owner;
                END;

                CREATE INDEX past_entry_owner ON past_entry (owner, id);
                CREATE TRIGGER past_entry_comes AFTER INSERT ON past_entry
                BEGIN
                    INSERT INTO owner_total (owner, past_entries) VALUES (new.owner, 1)
                    ON CONFLICT (owner) DO UPDATE SET past_entries = past_entries + 1;
                END;
                CREATE TRIGGER past_entry_goes AFTER DELETE ON past_entry
                BEGIN
                    UPDATE owner_total SET past_entries = past_entries - 1 WHERE owner = old.owner;
                END;
                """)
    }
}
