import GRDB
import TaskModel

/// Entries of queue files that were completed, and whose tasks are no longer kept.
package enum PastEntries {
    /// As many are known of each owner at most, and four times as many of all together; the oldest go first.
    package static let maximumCount = 1_000_000

    /// Bytes that are known of each owner's at most, where the records of her tasks may take up so many.
    static func maximumBytes(records: Int64) -> Int64 { records / 4 }
}

extension TaskStore {
    /// Forgets what was completed of a batch and is no longer kept: applying its file fetches it again.
    ///
    /// - Parameter owner: only what is this user's; `nil`: everyone's.
    package func forgetPastEntries(batch: String, owner: UInt32?) async throws(StoreError) {
        let chosen = "SELECT id FROM past_entry WHERE batch = ?1 AND (?2 IS NULL OR owner = ?2) LIMIT"
        while try read({ try $0.firstRow(chosen + " 1", [batch, owner]) { _ in true } }) != nil {
            _ = try await inSteps { database, rows in
                try database.run("DELETE FROM past_entry WHERE id IN (\(chosen) ?3)", [batch, owner, rows])
                return database.changesCount
            }
        }
    }
}

extension Database {
    /// Keeps what names the entry that a task came from, where there is such a one and the task is completed. Where its
    /// owner's take up too much with it, the oldest go.
    ///
    /// - Parameter records: bytes that the records of one owner's tasks may take up.
    func keepEntry(ofCompleted id: TaskID, owner: UInt32, records: Int64) throws {
        try run(
            """
            INSERT INTO past_entry (owner, batch, key, entry_mark, kind, url, url_mark, output)
            SELECT task.owner, batch, key, entry_mark, kind, url, url_mark, output FROM \(FlowSQL.tasks)
            WHERE task.id = ? AND state = 'completed' AND batch IS NOT NULL
            """, [id.rawValue])
        let bytes = PastEntries.maximumBytes(records: records)
        guard changesCount > 0, bytes < PastEntries.maximumBytes(records: .max) else { return }
        // Where there were too many before, they become fewer with each that comes.
        _ = try dropPastEntries(of: owner, limit: 2, count: .max, bytes: bytes)
    }

    /// Bytes that what is known of an owner's past entries takes up.
    func pastBytes(of owner: UInt32) throws -> Int64 {
        try firstRow("SELECT past_bytes FROM owner_total WHERE owner = ?", [owner]) { try $0.integer(0) } ?? 0
    }

    /// Forgets the oldest of an owner's past entries.
    ///
    /// - Parameters:
    ///   - limit: to forget at most.
    ///   - count: as many stay.
    ///   - bytes: those that stay take up as much at most.
    /// - Returns: how many were forgotten.
    func dropPastEntries(of owner: UInt32, limit: Int, count: Int, bytes: Int64) throws -> Int {
        var dropped = 0
        while dropped < limit {
            let kept = try firstRow("SELECT past_entries, past_bytes FROM owner_total WHERE owner = ?", [owner]) {
                row in
                (count: try row.int(0), bytes: try row.integer(1) as Int64)
            }
            guard let kept, kept.count > count || kept.bytes > bytes else { break }
            // How much each takes up is not known before.
            try run(
                HistorySQL.dropPastEntries, [owner, max(1, min(limit - dropped, kept.count.subtractingClamped(count)))])
            if changesCount == 0 { break }
            dropped += changesCount
        }
        return dropped
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
