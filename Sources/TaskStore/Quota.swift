import GRDB
import TaskModel

/// Limits on tasks, those that ended included. They are judged in the commit that would make them more, so that no two at
/// once go beyond it.
package struct Quota: Sendable, Equatable {
    package var tasksPerOwner: Int
    /// `nil`: as many as the owner may have.
    package var tasksPerBatch: Int?

    /// Bytes that the records of one owner's tasks may take up.
    package var recordsPerOwner: Int64

    /// Bytes that the entries of one set may take up which are compared with tasks when it is committed: that is one
    /// transaction, for which everyone waits.
    package var entriesPerSet: Int64

    package init(
        tasksPerOwner: Int = .max, tasksPerBatch: Int? = nil, recordsPerOwner: Int64 = .max,
        entriesPerSet: Int64 = 256 << 20
    ) {
        self.entriesPerSet = entriesPerSet
        self.tasksPerOwner = tasksPerOwner
        self.tasksPerBatch = tasksPerBatch
        self.recordsPerOwner = recordsPerOwner
    }
}

extension Database {
    /// - Parameter batches: those that tasks were added to.
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

    /// - Parameter bytes: of one set.
    func check(entries bytes: Int64, within quota: Quota) throws {
        guard bytes > quota.entriesPerSet else { return }
        throw StoreError.quota(
            "the entries of one queue file (URLs, header fields, cookies, forms and so on) may take up "
                + "\(quota.entriesPerSet) bytes where it has a batch or keys, and these would take up \(bytes); divide it "
                + "into several with a batch each")
    }

    /// Judges what sets of one owner hold that are not committed yet: all of them together may be as much as her tasks.
    func checkStaged(_ quota: Quota, of owner: UInt32) throws {
        guard quota.tasksPerOwner < .max || quota.recordsPerOwner < .max else { return }
        let staged = try firstRow(
            """
            SELECT coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM staged_set
            WHERE owner = ? AND is_dropped = 0
            """, [owner]
        ) { (entries: try $0.int(0), bytes: try $0.integer(1) as Int64) }
        guard let staged else { return }
        guard staged.entries <= quota.tasksPerOwner else {
            throw StoreError.quota(Self.excess(quota.tasksPerOwner, "one owner", "tasks-per-owner"))
        }
        try quota.check(records: staged.bytes)
    }

    /// - Parameter batch: `nil`: all of them.
    private func count(owner: UInt32, batch: String?) throws -> Int {
        let states = TaskState.stored.map(\.rawValue).joined(separator: " + ")
        return try firstRow(
            """
            SELECT coalesce(sum(\(states)), 0) FROM flow
            WHERE owner = ?1 AND \(FlowSQL.visible) AND (?2 IS NULL OR batch = ?2)
            """, [owner, batch]
        ) { try $0.int(0) } ?? 0
    }

    private static func excess(_ limit: Int, _ whose: String, _ key: String) -> String {
        "that would be more than the \(limit) tasks that \(whose) may have; remove some, or raise limits.\(key)"
    }
}
