import GRDB
import TaskModel

/// What is kept of the past.
package struct KeptHistory: Sendable, Equatable {
    /// Older than this moment, it goes.
    package var since: Milliseconds
    /// As much is kept at most; the oldest goes first.
    package var count: Int

    package init(since: Milliseconds, count: Int) {
        self.since = since
        self.count = count
    }
}

extension TaskStore {
    /// The tasks that ended too long ago, or that are too many, the oldest end first.
    ///
    /// - Parameter limit: at most so many.
    package func expired(_ kept: KeptHistory, limit: Int) throws(StoreError) -> [TaskID] {
        try read { database in
            let states = TaskState.stored.filter(\.isEnded).map(\.rawValue).joined(separator: " + ")
            let ended = try database.firstRow("SELECT coalesce(sum(\(states)), 0) FROM flow") { try $0.int(0) } ?? 0
            let surplus = min(limit, max(0, ended - kept.count))
            let tooMany = try database.rows(
                """
                SELECT id FROM task INDEXED BY task_finished WHERE finished_at IS NOT NULL
                ORDER BY finished_at, id LIMIT ?
                """, [surplus]
            ) { try $0.id(0) }
            let tooOld = try database.rows(
                """
                SELECT id FROM task INDEXED BY task_finished WHERE finished_at IS NOT NULL AND finished_at < ?
                ORDER BY finished_at, id LIMIT ?
                """, [kept.since, limit]
            ) { try $0.id(0) }
            return tooMany.count > tooOld.count ? tooMany : tooOld
        }
    }

    /// When the first of the tasks that have ended did so.
    package func firstEnd() throws(StoreError) -> Milliseconds? {
        try read { database in
            try database.firstRow(
                "SELECT min(finished_at) FROM task INDEXED BY task_finished WHERE finished_at IS NOT NULL"
            ) { try $0.integerOrNil(0) } ?? nil
        }
    }

    /// When the oldest event of the journal was.
    package func firstEventTime() throws(StoreError) -> Milliseconds? {
        try read { database in
            try database.firstRow("SELECT at FROM event ORDER BY sequence LIMIT 1") { try $0.integer(0) }
        }
    }

    /// Deletes events that happened too long ago, or are too many; what is told of many tasks at once goes as a whole.
    ///
    /// - Returns: whether there may be more to delete.
    package func trimEvents(_ kept: KeptHistory) async throws(StoreError) -> Bool {
        let newest = try lastEvent()
        guard let first = try oldestEvent(), let time = try firstEventTime(),
            time < kept.since || newest.subtractingClamped(first) >= Int64(kept.count)
        else { return false }
        let last = try read { database -> Int64? in
            // In the order of their numbers, which is that of their times but for a clock that was set.
            let young =
                try database.firstRow(
                    """
                    SELECT min(sequence) FROM (
                        SELECT sequence, at FROM event ORDER BY sequence LIMIT ?) WHERE at >= ?
                    """, [Self.rowsInCommit, kept.since]
                ) { try $0.integerOrNil(0) } ?? nil
            let end =
                try database.firstRow(
                    "SELECT max(sequence) FROM (SELECT sequence FROM event ORDER BY sequence LIMIT ?)",
                    [Self.rowsInCommit]
                ) { try $0.integerOrNil(0) } ?? nil
            guard let end else { return nil }
            let old = young.map { $0.subtractingClamped(1) } ?? end
            return min(end, max(old, newest.subtractingClamped(Int64(kept.count))))
        }
        guard let last else { return false }
        return try await writes.perform(weight: Self.rowsInCommit) { database in
            try database.run(
                """
                DELETE FROM event WHERE sequence IN (
                    SELECT sequence FROM event WHERE sequence <= ? ORDER BY sequence LIMIT ?)
                """, [last, Self.rowsInCommit])
            return database.changesCount > 0
        }
    }
}
