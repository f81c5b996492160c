import GRDB
import TaskModel

/// The limits on tasks, including ended ones. They are checked in the commit that adds tasks, so that concurrent
/// additions cannot exceed them.
package struct Quota: Sendable, Equatable {
    package var tasksPerOwner: Int
    /// The limit per batch; `nil` for the owner's limit only.
    package var tasksPerBatch: Int?

    /// The maximum number of bytes that the records of one owner's tasks may take up.
    package var recordsPerOwner: Int64

    /// The maximum number of bytes of the entries of a staged batch that are compared with tasks at the commit. The
    /// comparison is a single transaction that blocks all other writers.
    package var entriesPerStagedBatch: Int64

    package init(
        tasksPerOwner: Int = .max, tasksPerBatch: Int? = nil, recordsPerOwner: Int64 = .max,
        entriesPerStagedBatch: Int64 = 256 << 20
    ) {
        self.entriesPerStagedBatch = entriesPerStagedBatch
        self.tasksPerOwner = tasksPerOwner
        self.tasksPerBatch = tasksPerBatch
        self.recordsPerOwner = recordsPerOwner
    }
}

extension Database {
    /// Checks the number of an owner's tasks.
    ///
    /// - Parameter batches: the batches that tasks were added to.
    /// - Throws: ``StoreError/quota(_:)``.
    func check(_ quota: Quota, of owner: UInt32, batches: Set<String>) throws {
        if quota.tasksPerOwner < .max, try count(owner: owner, batch: nil) > quota.tasksPerOwner {
            throw StoreError.quota(Self.excess(quota.tasksPerOwner, "one owner", "tasks-per-owner"))
        }
        guard let limit = quota.tasksPerBatch else { return }
        for batch in batches.sorted() where try count(owner: owner, batch: batch) > limit {
            throw StoreError.quota(Self.excess(limit, "the batch \(batch)", "tasks-per-batch"))
        }
    }

    /// Checks the size of a staged batch's entries.
    ///
    /// - Parameter bytes: the number of bytes in one staged batch.
    func check(entries bytes: Int64, within quota: Quota) throws {
        guard bytes > quota.entriesPerStagedBatch else { return }
        throw StoreError.quota(
            "the entries of the queue file (URLs, header fields, cookies, forms and so on) need \(bytes) bytes, more "
                + "than the limit of \(quota.entriesPerStagedBatch) bytes for a file with a batch or keys; divide it "
                + "into several files with a batch each")
    }

    /// Checks an owner's uncommitted staged batches: all of them together are limited like the owner's tasks.
    func checkStaged(_ quota: Quota, of owner: UInt32) throws {
        guard quota.tasksPerOwner < .max || quota.recordsPerOwner < .max else { return }
        let staged = try firstRow(
            """
            SELECT coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM staged_batch
            WHERE owner = ? AND is_dropped = 0
            """, [owner]
        ) { (entries: try $0.int(0), bytes: try $0.integer(1) as Int64) }
        guard let staged else { return }
        guard staged.entries <= quota.tasksPerOwner else {
            throw StoreError.quota(Self.excess(quota.tasksPerOwner, "one owner", "tasks-per-owner"))
        }
        try quota.check(records: staged.bytes)
    }

    /// Returns the number of an owner's tasks.
    ///
    /// - Parameter batch: the batch to count; `nil` for all.
    private func count(owner: UInt32, batch: String?) throws -> Int {
        let states = TaskState.stored.map(\.rawValue).joined(separator: " + ")
        return try firstRow(
            """
            SELECT coalesce(sum(\(states)), 0) FROM fair_share_group
            WHERE owner = ?1 AND \(GroupSQL.visible) AND (?2 IS NULL OR batch = ?2)
            """, [owner, batch]
        ) { try $0.int(0) } ?? 0
    }

    private static func excess(_ limit: Int, _ whose: String, _ key: String) -> String {
        "that would be more than the \(limit) tasks that \(whose) may have; remove some, or raise limits.\(key)"
    }
}
