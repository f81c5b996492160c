import GRDB
import TaskModel

extension TaskStore {
    /// Begins a set of entries that ``commitSet(_:owner:prune:dryRun:quota:now:receipt:leaving:)`` applies as a whole.
    /// The set is stored in the database. It is dropped when the store is opened again, or when its owner has begun
    /// ``TaskStore/setsPerOwner`` other sets.
    ///
    /// - Parameter batch: the batch to synchronise with the entries; if `nil`, each entry becomes a new task.
    /// - Returns: the set's id.
    package func beginSet(owner: UInt32, batch: String?) async throws(StoreError) -> Int64 {
        try checkRoom()
        return try await writes.perform { database in
            try database.run("INSERT INTO staged_set (owner, batch) VALUES (?, ?)", [owner, batch])
            let number = database.lastInsertedRowID
            // Clients that disconnected may have left uncommitted sets.
            try database.run(
                """
                UPDATE staged_set SET is_dropped = 1 WHERE owner = ?1 AND is_dropped = 0 AND id NOT IN (
                    SELECT id FROM staged_set WHERE owner = ?1 AND is_dropped = 0 ORDER BY id DESC LIMIT ?2)
                """, [owner, Self.setsPerOwner])
            return number
        }
    }

    /// Encodes tasks for storage. This is not done on the writer's thread, for which other callers wait.
    package func prepare(_ tasks: [NewTask]) throws(StoreError) -> PreparedTasks {
        var prepared = PreparedTasks()
        prepared.tasks.reserveCapacity(tasks.count)
        var rests = StoredEntry.Rests()
        for index in tasks.indices {
            prepared.tasks.append(try FreshTask(tasks[index], identity: identity, rests: &rests))
        }
        return prepared
    }

    /// Adds entries to a set. The entries get the set's batch, if it has one.
    ///
    /// Entries that can only become new tasks, because they have neither a batch to compare with nor a key, are
    /// inserted as hidden tasks immediately. Their commit then takes as long for a million entries as for one.
    ///
    /// - Parameter owner: the required owner of the set; `nil` for any.
    /// - Returns: the number of entries in the set so far.
    /// - Throws: ``StoreError/unknownSet(_:)``, ``StoreError/quota(_:)``, ``StoreError/nearlyFull(free:reserved:)``.
    package func put(
        _ set: Int64, _ entries: PreparedTasks, owner: UInt32? = nil, quota: Quota = Quota(), now: Milliseconds
    ) async throws(StoreError) -> Int {
        try checkRoom()
        let fresh = entries.tasks
        // The entries need not be durable yet: the commit of the set, which promises durability, syncs them as well.
        return try await writes.perform(weight: fresh.count, isLasting: false) { database in
            let staged = try database.stagedSet(set, owner: owner)
            // Entries keep their order: after a staged entry, all further entries are staged.
            var rest = fresh[...]
            if staged.batch == nil, try !database.hasStagedEntries(set) {
                let free = fresh.prefix { $0.entry.key == nil }
                rest = rest[free.endIndex...]
                let ranges = try database.keepingRecords(of: [staged.owner], within: quota, room: {}) {
                    try database.insert(free, owner: staged.owner, set: set, now: now)
                }
                for range in ranges { try database.stage(range, set: set) }
            }
            try database.stage(rest, set: set, batch: staged.batch)
            let bytes = rest.reduce(0 as Int64) { $0.addingClamped($1.stagedBytes) }
            if !rest.isEmpty { try database.check(entries: staged.bytes.addingClamped(bytes), within: quota) }
            try database.run(
                "UPDATE staged_set SET entries = entries + ?, bytes = bytes + ? WHERE id = ?",
                [fresh.count, bytes, set])
            try database.checkStaged(quota, of: staged.owner)
            return staged.entries + fresh.count
        }
    }

    /// Returns the batch that a set is synchronised with; `nil` if there is none or the set does not exist.
    package func batch(ofSet set: Int64, owner: UInt32) throws(StoreError) -> String? {
        try read { database in
            try database.firstRow(
                "SELECT batch FROM staged_set WHERE id = ? AND owner = ? AND is_dropped = 0", [set, owner]
            ) {
                try $0.textOrNil(0)
            } ?? nil
        }
    }

    /// Applies a set in one transaction and removes it. A dry run reports the changes without making them and keeps the
    /// set.
    ///
    /// In a batch, an entry is identified by its key, or else by kind, URL and output. An existing completed task stays
    /// unchanged. Any other existing task is updated, and is made ready again if it failed or waits for the user.
    ///
    /// - Parameters:
    ///   - prune: whether to cancel the batch's tasks that no entry names and that have not ended.
    ///   - receipt: the name for a ``SetReceipt`` stored in the same commit. If a receipt of that name exists already,
    ///     the set is removed without any other effect.
    ///   - leaving: called with ``SetOutcome/moved`` before the commit, if it is not empty, because afterwards the
    ///     previous directories are no longer recorded anywhere. It may be called for a commit that fails, and again
    ///     for the next one.
    /// - Throws: ``StoreError/unknownSet(_:)``, ``StoreError/quota(_:)``, ``StoreError/nearlyFull(free:reserved:)``.
    package func commitSet(
        _ set: Int64, owner: UInt32, prune: Bool, dryRun: Bool, quota: Quota = Quota(), now: Milliseconds,
        receipt: String? = nil,
        leaving: @escaping @Sendable ([TaskID: TaskSpecification]) -> Void = { _ in }
    ) async throws(StoreError) -> SetOutcome {
        try await writes.perform(weight: CommitLimit.rowsInCommit) { database in
            let staged = try database.stagedSet(set, owner: owner)
            let application = StagedBatchMerge(set: set, owner: owner, batch: staged.batch, now: now)
            let batches = try quota.tasksPerBatch == nil ? [] : database.batches(ofSet: set)
            // The staged data is written both to the log and to the tables.
            try self.checkRoom(for: staged.bytes.multipliedClamped(by: 2), in: database)
            let run = {
                let outcome = try database.keepingRecords(of: [owner], within: quota, room: {}) {
                    try application.run(in: database, prune: prune)
                }
                if outcome.added > 0 { try database.check(quota, of: owner, batches: batches) }
                return outcome
            }
            guard !dryRun else {
                var outcome = try database.undoing(run)
                // A dry run assigns no ids.
                outcome.idRanges = []
                return outcome
            }
            if let receipt, try database.hasReceipt(receipt) {
                try database.drop(set)
                return SetOutcome()
            }
            let outcome = try run()
            try database.run("DELETE FROM staged_range WHERE set_id = ?", [set])
            try database.drop(set)
            if let receipt { try database.write(SetReceipt(outcome), named: receipt) }
            if !outcome.moved.isEmpty { leaving(outcome.moved) }
            return outcome
        }
    }

    /// Resets the byte counts and resume data of tasks; their other data and standing stay unchanged.
    package func forgetBytes(of ids: [TaskID]) async throws(StoreError) {
        try await inParts(ids, ()) { database, id, _ in
            try database.forgetBytes(of: id)
            return 0
        }
    }

    /// Drops a set.
    ///
    /// - Parameter owner: the required owner of the set; `nil` for any.
    /// - Throws: ``StoreError/unknownSet(_:)``.
    package func abortSet(_ set: Int64, owner: UInt32? = nil) async throws(StoreError) {
        try await writes.perform { database in
            _ = try database.stagedSet(set, owner: owner)
            try database.drop(set)
        }
    }

    /// Deletes a part of the remaining data of committed and dropped sets.
    ///
    /// - Returns: whether there may be more to delete.
    package func sweep() async throws(StoreError) -> Bool {
        let hasSome = try read { database in
            try database.firstRow("SELECT EXISTS (SELECT 1 FROM staged_set WHERE is_dropped)") {
                try $0.integer(0) != 0
            }
        }
        guard hasSome == true else { return false }
        return try await inSteps { try $0.sweep(limit: $1) }.rows > 0
    }
}

extension Database {
    fileprivate func stagedSet(
        _ set: Int64, owner: UInt32?
    ) throws -> (owner: UInt32, batch: String?, entries: Int, bytes: Int64) {
        let found = try firstRow(
            "SELECT owner, batch, entries, bytes FROM staged_set WHERE id = ? AND is_dropped = 0", [set]
        ) { row in
            (
                owner: try row.owner(0), batch: try row.textOrNil(1), entries: try row.int(2),
                bytes: try row.integer(3) as Int64
            )
        }
        guard let found, owner == nil || found.owner == owner else { throw StoreError.unknownSet(set) }
        return found
    }

    /// Returns the batches of a set's tasks and entries.
    fileprivate func batches(ofSet set: Int64) throws -> Set<String> {
        Set(
            try rows(
                """
                SELECT batch FROM flow WHERE set_id = ?1 AND batch IS NOT NULL
                UNION SELECT batch FROM staged_entry WHERE set_id = ?1 AND batch IS NOT NULL
                """, [set]
            ) { try $0.text(0) })
    }

    fileprivate func hasStagedEntries(_ set: Int64) throws -> Bool {
        try firstRow("SELECT EXISTS (SELECT 1 FROM staged_entry WHERE set_id = ?)", [set]) {
            try $0.integer(0) != 0
        } ?? false
    }

    private static let staging = """
        INSERT INTO staged_entry (id, \(StoredEntry.columnsWithBatch), path, state, reason, not_before, secrets, set_id)
        VALUES
        """

    /// Stores entries until their set is committed.
    ///
    /// - Parameter batch: the set's batch, which applies to each entry.
    fileprivate func stage(_ tasks: ArraySlice<FreshTask>, set: Int64, batch: String?) throws {
        let newest = try firstRow("SELECT max(id) FROM staged_entry") { try $0.integerOrNil(0) } ?? nil
        let first = (newest ?? 0).addingClamped(1)
        try insert(tasks.indices, Self.staging, columns: 18) { index, row in
            var entry = tasks[index].entry
            if let batch { entry.setBatch(batch) }
            row.bind(first.addingClamped(Int64(index - tasks.startIndex)))
            row.bind(entry)
            row.bind(entry.batch)
            row.bind(tasks[index].path)
            row.bind(tasks[index].standing)
            row.bind(tasks[index].secrets)
            row.bind(set)
        }
        for (index, task) in tasks.enumerated() {
            guard let hashes = task.pieceHashes else { continue }
            try stagePieceHashes(ofEntry: first.addingClamped(Int64(index)), hashes)
        }
    }

    /// Records the range of a set's tasks that are already inserted.
    fileprivate func stage(_ range: TaskRange, set: Int64) throws {
        let (state, reason) = (range.state.rawValue, range.reason?.rawValue)
        try run(
            """
            UPDATE staged_range SET last = ?1 WHERE set_id = ?2 AND last = ?3 - 1 AND state = ?4 AND reason IS ?5
                AND first = (SELECT max(first) FROM staged_range WHERE set_id = ?2)
            """, [range.ids.upperBound, set, range.ids.lowerBound, state, reason])
        guard changesCount == 0 else { return }
        try run(
            "INSERT INTO staged_range (set_id, first, last, state, reason) VALUES (?, ?, ?, ?, ?)",
            [set, range.ids.lowerBound, range.ids.upperBound, state, reason])
    }

    /// Marks a set as dropped; its remaining data is deleted later in parts.
    fileprivate func drop(_ set: Int64) throws {
        try run("UPDATE staged_set SET is_dropped = 1 WHERE id = ?", [set])
    }

    /// Deletes remaining data of one dropped set.
    ///
    /// - Parameter limit: the maximum number of rows to delete.
    /// - Returns: `limit` if there may be more to delete; 0 if there is no dropped set.
    fileprivate func sweep(limit: Int) throws -> Int {
        let set = try firstRow("SELECT id FROM staged_set WHERE is_dropped ORDER BY id LIMIT 1") { try $0.integer(0) }
        guard let set else { return 0 }
        try run(
            "DELETE FROM staged_entry WHERE id IN (SELECT id FROM staged_entry WHERE set_id = ? LIMIT ?)", [set, limit])
        guard changesCount == 0 else { return limit }
        let range = try firstRow(
            "SELECT first, last FROM staged_range WHERE set_id = ? ORDER BY first LIMIT 1", [set]
        ) { (first: try $0.integer(0), last: try $0.integer(1)) }
        if let range {
            let end = min(range.last, range.first.addingClamped(Int64(limit) - 1))
            try run("DELETE FROM task WHERE id BETWEEN ? AND ?", [range.first, end])
            try run("DELETE FROM staged_range WHERE set_id = ? AND first = ?", [set, range.first])
            if end < range.last {
                try run(
                    "INSERT INTO staged_range (set_id, first, last, state) VALUES (?, ?, ?, '')",
                    [set, end + 1, range.last])
            }
            return limit
        }
        try run("DELETE FROM staged_set WHERE id = ?", [set])
        return limit
    }
}
