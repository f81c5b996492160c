import GRDB
package import TaskModel

/// The limits of the history to keep.
package struct KeptHistory: Sendable, Equatable {
    /// The time before which records are removed.
    package var since: Milliseconds
    /// The maximum number of records per owner. All owners together may have four times as many. The oldest are removed
    /// first; if the common limit is exceeded, they are those of the owners that have the most.
    package var count: Int

    package init(since: Milliseconds, count: Int) {
        self.since = since
        self.count = count
    }
}

/// The SQL statements that find records to remove. Each names its index.
enum HistorySQL {
    static let endedByOwner = """
        SELECT owner, sum(\(TaskState.stored.filter(\.isEnded).map(\.rawValue).joined(separator: " + "))) AS ended
        FROM fair_share_group GROUP BY owner HAVING ended > 0
        """
    static let firstEnd = """
        SELECT min(finished_at) FROM task INDEXED BY task_ended WHERE owner = ? AND finished_at IS NOT NULL
        """
    static let ended = """
        SELECT id, finished_at FROM task INDEXED BY task_ended WHERE owner = ? AND finished_at IS NOT NULL
        ORDER BY finished_at, id LIMIT ?
        """
    static let events = """
        SELECT sequence, count FROM event INDEXED BY event_owner WHERE owner = ? ORDER BY sequence LIMIT ?
        """
    static let dropEvents = "DELETE FROM event INDEXED BY event_owner WHERE owner = ? AND sequence <= ?"
    static let dropPastEntries = """
        DELETE FROM past_entry WHERE id IN (
            SELECT id FROM past_entry INDEXED BY past_entry_owner WHERE owner = ? ORDER BY id LIMIT ?)
        """
}

extension TaskStore {
    /// Returns tasks that ended too long ago or exceed their owner's limit, with the oldest end first for each owner.
    /// The result is divided evenly between owners, so that tasks of one owner that cannot be removed do not block
    /// those of others.
    ///
    /// - Parameter limit: the maximum number of tasks, except that at least one per owner is returned.
    package func expired(_ kept: KeptHistory, limit: Int) throws(StoreError) -> [TaskID] {
        try read { database in
            let owners = try database.endedByOwner()
            let level = OwnerShares.level(of: owners.lazy.map(\.ended), limit: kept.count)
            let due = try owners.filter { owner, ended in
                if ended > level { return true }
                return try database.firstEnd(of: owner).map { $0 < kept.since } ?? false
            }
            let share = max(1, limit / max(1, due.count))
            var found: [TaskID] = []
            for (owner, ended) in due {
                let surplus = ended - level
                let first = try database.rows(HistorySQL.ended, [owner, share]) { row in
                    (id: try row.id(0), at: try row.integer(1) as Milliseconds)
                }
                for (index, task) in first.enumerated() {
                    guard index < surplus || task.at < kept.since else { break }
                    found.append(task.id)
                }
            }
            return found
        }
    }

    /// Returns the earliest end time of all ended tasks.
    package func firstEnd() throws(StoreError) -> Milliseconds? {
        try read { database in
            try database.endedByOwner().compactMap { try database.firstEnd(of: $0.owner) }.min()
        }
    }

    /// Returns the time of the oldest event in the journal.
    package func firstEventTime() throws(StoreError) -> Milliseconds? {
        try read { database in
            try database.firstRow("SELECT at FROM event ORDER BY sequence LIMIT 1") { try $0.integer(0) }
        }
    }

    /// The maximum number of bytes of the facts about one owner's removed tasks. All owners together may have four times
    /// as many.
    package static let removedBytes = 128 << 20

    /// Removes events that are too old or exceed their owner's limit. A journal row that stands for several tasks is
    /// removed as a whole.
    ///
    /// - Returns: whether there may be more to remove.
    package func trimEvents(
        _ kept: KeptHistory, removedBytes: Int = TaskStore.removedBytes
    ) async throws(StoreError) -> Bool {
        if let time = try firstEventTime(), time < kept.since, let last = try lastOld(kept.since) {
            return try await writes.perform(weight: CommitLimit.rowsInCommit) { database in
                try database.run("DELETE FROM event WHERE sequence <= ?", [last])
                return database.changesCount > 0
            }
        }
        var surplus = try surplusEvents(kept.count)
        if surplus == nil { surplus = try surplusFacts(removedBytes) }
        guard let (owner, last) = surplus else { return false }
        return try await writes.perform(weight: CommitLimit.rowsInCommit) { database in
            try database.run(HistorySQL.dropEvents, [owner, last])
            return database.changesCount > 0
        }
    }

    /// Returns the last of the events at the journal's beginning that are too old, limited to the number that fits into
    /// one commit.
    private func lastOld(_ since: Milliseconds) throws(StoreError) -> Int64? {
        try read { database in
            // Sequence numbers have the order of times, unless the system clock was set.
            let rows = try database.rows(
                "SELECT sequence, at FROM event ORDER BY sequence LIMIT ?", [CommitLimit.rowsInCommit]
            ) { row in (sequence: try row.integer(0) as Int64, at: try row.integer(1) as Milliseconds) }
            return rows.prefix { $0.at < since }.last?.sequence
        }
    }

    /// Returns an owner with too many events, and the last event to remove in one commit.
    private func surplusEvents(_ limit: Int) throws(StoreError) -> (owner: UInt32, last: Int64)? {
        try read { database in
            let totals = try database.rows("SELECT owner, events FROM owner_total WHERE events > 0") { row in
                (owner: try row.owner(0), count: try row.int(1))
            }
            let level = OwnerShares.level(of: totals.lazy.map(\.count), limit: limit)
            for (owner, count) in totals where count > level {
                let rows = try database.rows(HistorySQL.events, [owner, CommitLimit.rowsInCommit]) { row in
                    (sequence: try row.integer(0) as Int64, count: try row.int(1))
                }
                var (left, last) = (count, nil as Int64?)
                for row in rows {
                    guard row.count > 0, row.count <= left, left - row.count >= level else { break }
                    left -= row.count
                    last = row.sequence
                }
                if let last { return (owner, last) }
            }
            return nil
        }
    }

    /// Returns an owner with too many facts about removed tasks, and the last event to remove in one commit.
    private func surplusFacts(_ limit: Int) throws(StoreError) -> (owner: UInt32, last: Int64)? {
        try read { database in
            let totals = try database.rows(
                "SELECT owner, removed_task_bytes FROM owner_total WHERE removed_task_bytes > 0"
            ) { row in (owner: try row.owner(0), bytes: try row.int(1)) }
            let level = OwnerShares.level(of: totals.lazy.map(\.bytes), limit: limit)
            for (owner, bytes) in totals where bytes > level {
                // Few at a time: only some of the events are removals.
                let rows = try database.rows(HistorySQL.events, [owner, 256]) { try $0.integer(0) as Int64 }
                if let last = rows.last { return (owner, last) }
            }
            return nil
        }
    }

    /// Returns the largest sequence number of a removed event; 0 if none was removed.
    ///
    /// - Parameter owner: the user whose events are considered; `nil` for all users.
    package func lastTrimmedEvent(owner: UInt32?) throws(StoreError) -> Int64 {
        try read { database in try database.lastTrimmedEvent(owner: owner) }
    }

    /// Removes the oldest completed entries of queue files if an owner has too many of them or they take up too many
    /// bytes.
    ///
    /// - Parameter limit: the maximum number of entries to keep per owner.
    /// - Returns: whether there may be more to remove.
    package func trimPastEntries(
        limit: Int = PastEntries.maximumCount, quota: Quota = Quota()
    ) async throws(StoreError) -> Bool {
        let bytes = PastEntries.maximumBytes(records: quota.recordsPerOwner)
        let surplus: (owner: UInt32, level: Int)? = try read { database in
            let totals = try database.rows(
                "SELECT owner, past_entries, past_entry_bytes FROM owner_total WHERE past_entries > 0"
            ) { row in (owner: try row.owner(0), count: try row.int(1), bytes: try row.integer(2) as Int64) }
            let level = OwnerShares.level(of: totals.lazy.map(\.count), limit: limit)
            return totals.first { $0.count > level || $0.bytes > bytes }.map { ($0.owner, level) }
        }
        guard let (owner, level) = surplus else { return false }
        return try await inSteps { database, rows in
            try database.dropPastEntries(of: owner, limit: rows, count: level, bytes: bytes)
        }.rows > 0
    }
}

extension Database {
    fileprivate func endedByOwner() throws -> [(owner: UInt32, ended: Int)] {
        try rows(HistorySQL.endedByOwner) { (try $0.owner(0), try $0.int(1)) }
    }

    fileprivate func firstEnd(of owner: UInt32) throws -> Milliseconds? {
        try firstRow(HistorySQL.firstEnd, [owner]) { try $0.integerOrNil(0) } ?? nil
    }
}

extension Database {
    /// Returns the largest sequence number of a removed event of a user, or of all users; 0 if none was removed.
    func lastTrimmedEvent(owner: UInt32?) throws -> Int64 {
        let sql = "SELECT max(last_trimmed_event) FROM owner_total WHERE ?1 IS NULL OR owner = ?1"
        return try firstRow(sql, [owner]) { try $0.integerOrNil(0) ?? 0 } ?? 0
    }
}
