import GRDB
import TaskModel

/// The completed entries of queue files whose tasks are no longer kept.
package enum PastEntries {
    /// The maximum number of entries per owner. All owners together may have four times as many; the oldest are removed
    /// first.
    package static let maximumCount = 1_000_000

    /// Returns the maximum number of bytes of one owner's past entries, given the limit on the owner's task records.
    static func maximumBytes(records: Int64) -> Int64 { records / 4 }
}

extension TaskStore {
    /// Forgets the completed entries of a batch that are no longer kept as tasks, so that applying its file downloads
    /// them again.
    ///
    /// - Parameter owner: the owner whose entries are forgotten; `nil` for all owners.
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
    /// Records the identity of the entry that a task was created from, if the task is completed and belongs to a batch.
    /// If the owner's past entries then exceed their limit, the oldest are removed.
    ///
    /// - Parameter records: the limit on the bytes of one owner's task records.
    func keepEntry(ofCompleted id: TaskID, owner: UInt32, records: Int64) throws {
        try run(
            """
            INSERT INTO past_entry (owner, batch, key, entry_fingerprint, kind, url, url_fingerprint, output)
            SELECT task.owner, batch, key, entry_fingerprint, kind, url, url_fingerprint, output FROM \(GroupSQL.tasks)
            WHERE task.id = ? AND state = 'completed' AND batch IS NOT NULL
            """, [id.rawValue])
        let bytes = PastEntries.maximumBytes(records: records)
        guard changesCount > 0, bytes < PastEntries.maximumBytes(records: .max) else { return }
        // Removing up to two entries for each new one reduces an existing excess gradually.
        _ = try dropPastEntries(of: owner, limit: 2, count: .max, bytes: bytes)
    }

    /// Returns the number of bytes that an owner's past entries take up.
    func pastEntryBytes(of owner: UInt32) throws -> Int64 {
        try firstRow("SELECT past_entry_bytes FROM owner_total WHERE owner = ?", [owner]) { try $0.integer(0) } ?? 0
    }

    /// Removes the oldest of an owner's past entries.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of entries to remove.
    ///   - count: the maximum number of entries to keep.
    ///   - bytes: the maximum number of bytes to keep.
    /// - Returns: the number of entries removed.
    func dropPastEntries(of owner: UInt32, limit: Int, count: Int, bytes: Int64) throws -> Int {
        var dropped = 0
        while dropped < limit {
            let kept = try firstRow("SELECT past_entries, past_entry_bytes FROM owner_total WHERE owner = ?", [owner]) {
                row in
                (count: try row.int(0), bytes: try row.integer(1) as Int64)
            }
            guard let kept, kept.count > count || kept.bytes > bytes else { break }
            // The size of each entry is not known in advance.
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

    /// Returns whether the entry was completed and is no longer kept as a task.
    func isPast(_ entry: StoredEntry, owner: UInt32, batch: String) throws -> Bool {
        let row =
            if let key = entry.key {
                try firstRow("SELECT 1 FROM past_entry WHERE owner = ? AND key = ? LIMIT 1", [owner, key]) { _ in true }
            } else {
                try firstRow(
                    """
                    SELECT 1 FROM past_entry WHERE owner = ? AND batch = ? AND entry_fingerprint = ? AND key IS NULL
                        AND url = ? AND kind = ? AND output IS ? AND url_fingerprint IS ? LIMIT 1
                    """,
                    [owner, batch, entry.entryFingerprint, entry.url, entry.kind, entry.output, entry.urlFingerprint]
                ) { _ in true }
            }
        return row ?? false
    }
}
