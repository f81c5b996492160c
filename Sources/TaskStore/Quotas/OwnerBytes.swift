import GRDB
package import TaskModel

/// The SQL statements for the disk usage of owners' downloads. Each uses an index, so that its cost does not grow with
/// the number of tasks.
enum OwnerBytesSQL {
    static let counted = "min(bytes_done, \(Schema.countedBytes))"
    static let kept = """
        SELECT coalesce((SELECT kept_bytes FROM owner_total WHERE owner = ?1), 0), coalesce((
            SELECT sum(\(counted)) FROM task
            WHERE id IN (SELECT value FROM json_each(?2)) AND kind = 'download'), 0)
        """
    static let most = """
        SELECT owner, kept_bytes FROM owner_total WHERE kept_bytes > 0 ORDER BY kept_bytes DESC, owner LIMIT ?
        """
    static let nextOwner = """
        SELECT owner FROM task INDEXED BY task_over_quota WHERE reason = 'quota' AND owner > ? ORDER BY owner LIMIT 1
        """
    static let waiting = """
        SELECT id, \(Schema.quotaNeed) FROM task INDEXED BY task_over_quota
        WHERE reason = 'quota' AND owner = ? AND \(Schema.quotaNeed) BETWEEN ? AND ?
        ORDER BY \(Schema.quotaNeed), id LIMIT ?
        """
    static let release = """
        UPDATE task SET state = 'queued', reason = NULL, not_before = NULL
        WHERE id IN (SELECT value FROM json_each(?)) AND state = 'waiting' AND reason = 'quota'
        """
}

extension TaskStore {
    /// The maximum number of tasks waiting for quota that are made ready at once.
    private static let readyTogether = 64

    /// Returns the number of bytes that an owner's downloads take up, as recorded in the store.
    ///
    /// - Parameter running: tasks to exclude.
    package func keptBytes(of owner: UInt32, besides running: some Sequence<TaskID> = []) throws(StoreError) -> Int64 {
        let ids = Self.list(running)
        return try read { database in
            try database.firstRow(OwnerBytesSQL.kept, [owner, ids]) { row in
                let (all, left) = (try row.integer(0) as Int64, try row.integer(1) as Int64)
                return max(0, all.subtractingClamped(left))
            } ?? 0
        }
    }

    /// Returns the number of bytes of one download that count towards its owner's total.
    package static func counted(_ bytes: Int64) -> Int64 { min(bytes, Schema.countedBytes) }

    /// Returns the owners whose downloads take up the most bytes.
    ///
    /// - Parameter owner: the only owner to return; `nil` for all.
    package func bytesByOwner(_ owner: UInt32?, limit: Int) throws(StoreError) -> [(owner: UInt32, bytes: Int64)] {
        if let owner { return [(owner, try keptBytes(of: owner))] }
        return try read { database in
            try database.rows(OwnerBytesSQL.most, [limit]) { (try $0.owner(0), try $0.integer(1)) }
        }
    }

    /// Returns the owners that have tasks waiting for quota.
    package func ownersOverQuota() throws(StoreError) -> [UInt32] {
        try read { database in
            var owners: [UInt32] = []
            var last: Int64 = -1
            while let next = try database.firstRow(OwnerBytesSQL.nextOwner, [last], { try $0.owner(0) }) {
                owners.append(next)
                last = Int64(next)
            }
            return owners
        }
    }

    /// Makes ready the tasks that wait for their owner's quota and fit into `room`, as far as their need is known; the
    /// smallest need comes first.
    ///
    /// - Parameters:
    ///   - room: the available bytes.
    ///   - all: whether to include tasks that were started and whose remaining size is unknown. They could exhaust the
    ///     quota again and again, so they resume only after a user has freed space.
    /// - Returns: the number of tasks made ready.
    package func releaseOverQuota(of owner: UInt32, room: Int64, all: Bool) async throws(StoreError) -> Int {
        guard room > 0 else { return 0 }
        let (unknown, limit) = (all ? -1 : 0, Self.readyTogether)
        let isAny = try read { database in
            try database.firstRow(OwnerBytesSQL.waiting, [owner, unknown, room, 1]) { _ in true } ?? false
        }
        guard isAny else { return 0 }
        var count = 0
        while all {
            let released = try await inSteps { database, rows in
                let ids = try database.rows(OwnerBytesSQL.waiting, [owner, -1, -1, rows]) { try $0.id(0) }
                try database.run(OwnerBytesSQL.release, [Self.list(ids)])
                return ids.count
            }
            count += released.rows
            if released.isAll { break }
        }
        return count
            + (try await writes.perform(weight: limit) { database in
                var left = room
                var ids: [TaskID] = []
                let found = try database.rows(OwnerBytesSQL.waiting, [owner, 0, room, limit]) { row in
                    (id: try row.id(0), need: try row.integer(1) as Int64)
                }
                for task in found where task.need <= left {
                    left -= task.need
                    ids.append(task.id)
                }
                try database.run(OwnerBytesSQL.release, [Self.list(ids)])
                return ids.count
            })
    }
}
