import GRDB
package import TaskModel

/// A fair-share group: the tasks of one owner and batch, among which the scheduler shares resources fairly. Its rows
/// are in the table `fair_share_group`.
package struct FairShareGroup: Sendable, Equatable {
    /// The identity of a group. Several rows have the same key while a staged batch of it is not committed.
    package struct Key: Sendable, Hashable {
        /// The owner's uid.
        package var owner: UInt32
        package var batch: String?

        package init(owner: UInt32, batch: String?) {
            self.owner = owner
            self.batch = batch
        }
    }

    /// The number of the row.
    package var id: Int64
    package var key: Key

    package var owner: UInt32 { key.owner }
    package var batch: String? { key.batch }

    package init(id: Int64, owner: UInt32, batch: String?) {
        self.id = id
        key = Key(owner: owner, batch: batch)
    }
}

/// SQL fragments for queries. A group of an uncommitted staged batch is hidden, together with its tasks.
enum GroupSQL {
    static let visible = "fair_share_group.staged_batch_id IS NULL"
    /// The visible tasks, joined with their group; the join order makes SQLite look up the task first.
    static let tasks = "task CROSS JOIN fair_share_group ON fair_share_group.id = task.group_id AND \(visible)"
    /// The numbers of tasks by state, one column per state.
    static let counts = TaskState.stored.map { "total(\($0.rawValue))" }.joined(separator: ", ")
}

extension TaskState {
    /// The states that are stored, in the order of the columns of the table `fair_share_group`.
    static let stored = allCases.filter { $0 != .active }
}

extension Database {
    /// Returns the id of the group of an owner's batch and creates the group if needed.
    ///
    /// - Parameter stagedBatch: the staged batch that the group belongs to, which makes it hidden.
    func group(owner: UInt32, batch: String?, stagedBatch: Int64? = nil) throws -> Int64 {
        let found = try firstRow(
            """
            SELECT id FROM fair_share_group WHERE owner = ? AND batch IS ? AND staged_batch_id IS ?
            ORDER BY id LIMIT 1
            """, [owner, batch, stagedBatch]
        ) { try $0.integer(0) }
        if let found { return found }
        try run(
            "INSERT INTO fair_share_group (owner, batch, staged_batch_id) VALUES (?, ?, ?)",
            [owner, batch, stagedBatch])
        return lastInsertedRowID
    }

    /// Moves a task to a batch of its owner; `nil` takes it out of its batch. Triggers count it there.
    func move(_ id: TaskID, toBatch batch: String?, of owner: UInt32) throws {
        try run("UPDATE task SET group_id = ? WHERE id = ?", [try group(owner: owner, batch: batch), id.rawValue])
    }

    /// Adds new tasks to the group's count. Later changes are counted by triggers.
    ///
    /// - Parameter state: the state as stored.
    func count(_ count: Int, _ state: TaskState, into group: Int64) throws {
        try run("UPDATE fair_share_group SET \(state.rawValue) = \(state.rawValue) + ? WHERE id = ?", [count, group])
    }
}

extension RowReader {
    /// Returns the values of ``GroupSQL/counts`` from the column `first` on; states without a task are absent.
    func counts(_ first: Int) throws(StoreError) -> [TaskState: Int] {
        var counts: [TaskState: Int] = [:]
        for (index, state) in TaskState.stored.enumerated() {
            let count = try whole(first + index)
            if count > 0 { counts[state] = count }
        }
        return counts
    }
}

extension TaskStore {
    /// Returns the number of tasks by stored state; states without a task are absent. The cost does not depend on the
    /// number of tasks.
    package func counts(owner: UInt32?) throws(StoreError) -> [TaskState: Int] {
        try read { database in
            try database.firstRow(
                """
                SELECT \(GroupSQL.counts) FROM fair_share_group
                WHERE \(GroupSQL.visible) AND (?1 IS NULL OR owner = ?1)
                """, [owner]
            ) { try $0.counts(0) } ?? [:]
        }
    }

    /// Returns a page of the batches that have tasks, by name. The query reads all of their tasks to add up the bytes.
    ///
    /// - Parameters:
    ///   - owner: as in ``PageQuery``.
    ///   - name: the name after which the page starts; `nil` for the beginning.
    ///   - limit: the maximum number of batches.
    package func batches(
        owner: UInt32?, after name: String? = nil, limit: Int = .max
    ) throws(StoreError) -> [BatchTotals] {
        try read(within: .asked) { database in
            // An index is read in the order of names.
            let index = owner == nil ? "fair_share_group_batch" : "fair_share_group_owner"
            let visible = """
                batch IS NOT NULL AND \(GroupSQL.visible) AND batch > ?2
                AND \(owner == nil ? "?1 IS NULL" : "fair_share_group.owner = ?1")
                """
            let page = try database.rows(
                """
                SELECT batch, \(GroupSQL.counts) FROM fair_share_group INDEXED BY \(index) WHERE \(visible)
                GROUP BY batch ORDER BY batch LIMIT ?3
                """, [owner, name ?? "", limit]
            ) { row in (batch: try row.text(0), counts: try row.counts(1)) }
            guard let last = page.last?.batch else { return [] }
            let bytes = try database.rows(
                """
                SELECT batch, sum(bytes_done), sum(bytes_total), sum(bytes_total IS NULL)
                FROM fair_share_group INDEXED BY \(index) CROSS JOIN task ON task.group_id = fair_share_group.id
                WHERE \(visible) AND batch <= ?3 GROUP BY batch
                """, [owner, name ?? "", last]
            ) { row in
                (
                    batch: try row.text(0), done: try row.integer(1) as Int64,
                    total: try row.integer(3) == 0 ? try row.integerOrNil(2) : nil
                )
            }
            let byBatch = Dictionary(bytes.map { ($0.batch, $0) }) { first, _ in first }
            return page.map { batch, counts in
                BatchTotals(
                    batch: batch, counts: counts, bytesDone: byBatch[batch]?.done ?? 0,
                    bytesTotal: byBatch[batch]?.total)
            }
        }
    }
}
