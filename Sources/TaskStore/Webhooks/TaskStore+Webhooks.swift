import GRDB
package import TaskModel

/// The stored state of a webhook.
package struct WebhookRecord: Sendable, Equatable {
    /// The sequence number up to which the events were read. They are done, pending or deferred.
    package var position: Int64
    /// The events that were read and are not done, in order.
    package var pending: [Int64] = []
    /// The owners of whom later events were not read yet, with the position up to which they were.
    package var deferred: [UInt32: Int64] = [:]
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

/// A change of the stored state of a webhook.
package struct WebhookChange: Sendable, Equatable {
    /// The new position; the larger one counts.
    package var position: Int64?
    /// The events that become pending.
    package var pending: Set<Int64>
    /// The events that are done.
    package var done: [Int64]
    /// The deferred owners with their positions; `nil` to keep them.
    package var deferred: [UInt32: Int64]?
    /// An event that was given up.
    package var givenUp: WebhookRecord.GivenUp?

    package init(
        position: Int64? = nil, pending: Set<Int64> = [], done: [Int64] = [], deferred: [UInt32: Int64]? = nil,
        givenUp: WebhookRecord.GivenUp? = nil
    ) {
        self.position = position
        self.pending = pending
        self.done = done
        self.deferred = deferred
        self.givenUp = givenUp
    }
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
                "SELECT name, position, given_up_count, given_up_at, given_up_sequence, given_up_error FROM webhook", []
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
            let pending = try database.rows(
                "SELECT webhook, sequence FROM webhook_pending ORDER BY webhook, sequence", []
            ) { row in (try row.text(0), try row.integer(1) as Int64) }
            for (name, sequence) in pending { records[name]?.pending.append(sequence) }
            let deferred = try database.rows("SELECT webhook, owner, position FROM webhook_deferred", []) { row in
                (try row.text(0), try row.owner(1), try row.integer(2) as Int64)
            }
            for (name, owner, position) in deferred { records[name]?.deferred[owner] = position }
            return records
        }
    }

    /// Records a change of a webhook. A power failure may undo it; the events are then sent again.
    package func record(_ change: WebhookChange, ofWebhook name: String) async throws(StoreError) {
        let deferred = try change.deferred.map { owners throws(StoreError) in
            try StoredJSON.encode(owners.map { [Int64($0), $1] })
        }
        try await writes.perform(weight: 1 + change.pending.count, isLasting: false) { database in
            if !change.done.isEmpty {
                try database.run(
                    "DELETE FROM webhook_pending WHERE webhook = ? AND sequence IN (SELECT value FROM json_each(?))",
                    [name, Self.list(change.done)])
            }
            if !change.pending.isEmpty {
                try database.run(
                    """
                    INSERT OR IGNORE INTO webhook_pending (webhook, sequence)
                    SELECT name, value FROM webhook, json_each(?2) WHERE name = ?1
                    """, [name, Self.list(change.pending)])
            }
            if let deferred {
                try database.run("DELETE FROM webhook_deferred WHERE webhook = ?", [name])
                try database.run(
                    """
                    INSERT OR IGNORE INTO webhook_deferred (webhook, owner, position)
                    SELECT name, json_extract(value, '$[0]'), json_extract(value, '$[1]')
                    FROM webhook, json_each(?2) WHERE name = ?1
                    """, [name, deferred])
            }
            if let position = change.position {
                try database.run("UPDATE webhook SET position = max(position, ?) WHERE name = ?", [position, name])
            }
            if let givenUp = change.givenUp {
                try database.run(
                    """
                    UPDATE webhook SET given_up_count = given_up_count + 1, given_up_at = ?, given_up_sequence = ?,
                        given_up_error = ? WHERE name = ?
                    """, [givenUp.at, givenUp.sequence, givenUp.message, name])
            }
        }
    }
}
