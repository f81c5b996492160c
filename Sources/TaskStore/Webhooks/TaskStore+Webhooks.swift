import GRDB
package import TaskModel

/// The stored state of a webhook.
package struct WebhookRecord: Sendable, Equatable {
    /// The sequence number up to which every event is done.
    package var position: Int64
    /// The later events that are done.
    package var done: Set<Int64> = []
    /// The number of events that were given up.
    package var givenUpCount = 0
    /// The last event that was given up.
    package var lastGivenUp: GivenUp?

    /// An event that was given up.
    package struct GivenUp: Sendable, Equatable {
        package var sequence: Int64
        package var at: Milliseconds
        package var message: String

        package init(sequence: Int64, at: Milliseconds, message: String) {
            self.sequence = sequence
            self.at = at
            self.message = message
        }
    }

    package init(position: Int64) { self.position = position }
}

extension TaskStore {
    /// Returns the stored state of webhooks. A webhook that is not stored yet begins after the newest event, and one
    /// that is not named is removed.
    package func openWebhooks(_ names: [String]) async throws(StoreError) -> [String: WebhookRecord] {
        let list = try StoredJSON.encode(names)
        return try await writes.perform { database in
            try database.run("DELETE FROM webhook WHERE name NOT IN (SELECT value FROM json_each(?))", [list])
            try database.run(
                "INSERT OR IGNORE INTO webhook (name, position) SELECT value, ? FROM json_each(?)",
                [try database.newestNumber(in: "event"), list])
            let rows = try database.rows(
                "SELECT name, position, given_up, given_up_at, given_up_sequence, given_up_error FROM webhook", []
            ) { row in
                var record = WebhookRecord(position: try row.integer(1))
                record.givenUpCount = try row.int(2)
                if let at: Milliseconds = try row.integerOrNil(3) {
                    record.lastGivenUp = .init(
                        sequence: try row.integer(4), at: at, message: try row.textOrNil(5) ?? "")
                }
                return (try row.text(0), record)
            }
            var records = Dictionary(rows) { first, _ in first }
            let done = try database.rows("SELECT webhook, sequence FROM webhook_done", []) { row in
                (try row.text(0), try row.integer(1) as Int64)
            }
            for (name, sequence) in done { records[name]?.done.insert(sequence) }
            return records
        }
    }

    /// Records that an event of a webhook is done. A power failure may undo it; the event is then sent again.
    ///
    /// - Parameters:
    ///   - sequence: the event; `nil` to record the position alone.
    ///   - position: the sequence number up to which every event is done.
    ///   - givenUp: describes an event that was given up.
    package func finish(
        _ sequence: Int64?, ofWebhook name: String, position: Int64, givenUp: WebhookRecord.GivenUp? = nil
    ) async throws(StoreError) {
        try await writes.perform(isLasting: false) { database in
            if let sequence, sequence > position {
                try database.run(
                    """
                    INSERT OR IGNORE INTO webhook_done (webhook, sequence)
                    SELECT name, ? FROM webhook WHERE name = ?
                    """, [sequence, name])
            }
            try database.run("UPDATE webhook SET position = max(position, ?) WHERE name = ?", [position, name])
            try database.run("DELETE FROM webhook_done WHERE webhook = ? AND sequence <= ?", [name, position])
            if let givenUp {
                try database.run(
                    """
                    UPDATE webhook SET given_up = given_up + 1, given_up_at = ?, given_up_sequence = ?,
                        given_up_error = ? WHERE name = ?
                    """, [givenUp.at, givenUp.sequence, givenUp.message, name])
            }
        }
    }
}
