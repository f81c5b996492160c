import GRDB
import TaskModel

/// How many tasks there may be, those that ended included. Judged in the commit that would make them more, so that no
/// two at once go beyond it.
package struct Quota: Sendable, Equatable {
    package var tasksPerOwner: Int
    /// `nil`: as many as the owner may have.
    package var tasksPerBatch: Int?

    package init(tasksPerOwner: Int = .max, tasksPerBatch: Int? = nil) {
        self.tasksPerOwner = tasksPerOwner
        self.tasksPerBatch = tasksPerBatch
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

    /// What sets of one owner hold that are not committed yet, all of them together, may not be more than the tasks.
    func checkStaged(_ quota: Quota, of owner: UInt32) throws {
        guard quota.tasksPerOwner < .max else { return }
        let staged = try firstRow(
            "SELECT coalesce(sum(entries), 0) FROM staged_set WHERE owner = ? AND is_dropped = 0", [owner]
        ) { try $0.int(0) }
        guard let staged, staged > quota.tasksPerOwner else { return }
        throw StoreError.quota(Self.excess(quota.tasksPerOwner, "one owner", "tasks-per-owner"))
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
