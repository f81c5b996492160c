import GRDB

extension Schema {
    /// Replaces the events of webhooks that are done by those that are not.
    ///
    /// All events up to a webhook's `position` were read. Of these, `webhook_pending` has those that are held and not
    /// done, and `webhook_deferred` the positions from which the events of some owners are still to be read. The number
    /// of rows is thereby limited, however long a single event fails. The number in `journal_origin` is the order in
    /// which the journals ended.
    @Sendable static func boundWebhooks(_ database: Database) throws {
        try database.execute(
            sql: """
                CREATE TABLE webhook_pending (
                    webhook TEXT NOT NULL REFERENCES webhook (name) ON DELETE CASCADE,
                    sequence INTEGER NOT NULL,
                    PRIMARY KEY (webhook, sequence)
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE webhook_deferred (
                    webhook TEXT NOT NULL REFERENCES webhook (name) ON DELETE CASCADE,
                    owner INTEGER NOT NULL,
                    position INTEGER NOT NULL,
                    PRIMARY KEY (webhook, owner)
                ) STRICT, WITHOUT ROWID;

                WITH RECURSIVE
                    newest AS (SELECT webhook AS name, max(sequence) AS last FROM webhook_done GROUP BY webhook),
                    found (name, sequence, last) AS (
                        SELECT webhook.name, max(event.sequence - event.count, webhook.position) + 1,
                            min(event.sequence, newest.last)
                        FROM newest JOIN webhook USING (name) JOIN event
                            ON event.sequence > webhook.position AND event.sequence - event.count < newest.last
                        UNION ALL
                        SELECT name, sequence + 1, last FROM found WHERE sequence < last
                    )
                INSERT INTO webhook_pending (webhook, sequence)
                SELECT name, sequence FROM found WHERE NOT EXISTS (
                    SELECT 1 FROM webhook_done AS done
                    WHERE done.webhook = found.name AND done.sequence = found.sequence
                );
                UPDATE webhook SET position = max(
                    position, coalesce((SELECT max(sequence) FROM webhook_done AS done WHERE done.webhook = webhook.name), 0));
                DROP TABLE webhook_done;

                ALTER TABLE journal_origin ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
                """)
    }
}
