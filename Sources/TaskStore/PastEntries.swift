import GRDB
import TaskModel

/// Entries of queue files that were completed, and whose tasks are no longer kept.
package enum PastEntries {
    /// As many are known of each owner at most, and four times as many of all together; the oldest go first.
    package static let maximumCount = 1_000_000
}

extension TaskStore {
    /// Forgets what was completed of a batch and is no longer kept: applying its file fetches it again.
    ///
    /// - Parameter owner: only what is this user's; `nil`: everyone's.
    package func forgetPastEntries(batch: String, owner: UInt32?) async throws(StoreError) {
        let chosen = "SELECT id FROM past_entry WHERE batch = ?1 AND (?2 IS NULL OR owner = ?2) LIMIT"
        while try read({ try $0.firstRow(chosen + " 1", [batch, owner]) { _ in true } }) != nil {
            try await writes.perform(weight: Self.rowsInCommit) { database in
                try database.run(
                    "DELETE FROM past_entry WHERE id IN (\(chosen) ?3)", [batch, owner, Self.rowsInCommit])
            }
        }
    }
}

extension Database {
    /// Keeps what names the entry that a task came from, where there is such a one and the task is completed.
    func keepEntry(ofCompleted id: TaskID) throws {
        try run(
            """
            INSERT INTO past_entry (owner, batch, key, entry_mark, kind, url, url_mark, output)
            SELECT task.owner, batch, key, entry_mark, kind, url, url_mark, output FROM \(FlowSQL.tasks)
            WHERE task.id = ? AND state = 'completed' AND batch IS NOT NULL
            """, [id.rawValue])
    }

    func hasPastEntries(owner: UInt32) throws -> Bool {
        try firstRow("SELECT 1 FROM past_entry WHERE owner = ? LIMIT 1", [owner]) { _ in true } ?? false
    }

    /// Whether what an entry names was completed, and is no longer kept as a task.
    func isPast(_ entry: StoredEntry, owner: UInt32, batch: String) throws -> Bool {
        let row =
            if let key = entry.key {
                try firstRow("SELECT 1 FROM past_entry WHERE owner = ? AND key = ? LIMIT 1", [owner, key]) { _ in true }
            } else {
                try firstRow(
                    """
                    SELECT 1 FROM past_entry WHERE owner = ? AND batch = ? AND entry_mark = ? AND key IS NULL
                        AND url = ? AND kind = ? AND output IS ? AND url_mark IS ? LIMIT 1
                    """, [owner, batch, entry.entryMark, entry.url, entry.kind, entry.output, entry.urlMark]
                ) { _ in true }
            }
        return row ?? false
    }
}
