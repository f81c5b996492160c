import GRDB
package import TaskModel

extension TaskStore {
    /// Begins a staged batch, which ``commitStagedBatch(_:owner:prune:dryRun:quota:now:receipt:leaving:)`` applies as a
    /// whole. The staged batch is stored in the database. It is dropped when the store is opened again, or when its
    /// owner has begun ``TaskStore/stagedBatchesPerOwner`` other staged batches.
    ///
    /// - Parameter batch: the batch to synchronise with the entries; if `nil`, each entry becomes a new task.
    /// - Returns: the staged batch's id.
    package func beginStagedBatch(owner: UInt32, batch: String?) async throws(StoreError) -> Int64 {
        try checkRoom()
        return try await writes.perform { database in
            try database.run("INSERT INTO staged_batch (owner, batch) VALUES (?, ?)", [owner, batch])
            let number = database.lastInsertedRowID
            // Clients that disconnected may have left uncommitted staged batches.
            try database.run(
                """
                UPDATE staged_batch SET is_dropped = 1 WHERE owner = ?1 AND is_dropped = 0 AND id NOT IN (
                    SELECT id FROM staged_batch WHERE owner = ?1 AND is_dropped = 0 ORDER BY id DESC LIMIT ?2)
                """, [owner, Self.stagedBatchesPerOwner])
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

    /// Adds entries to a staged batch. The entries get the staged batch's batch, if it has one.
    ///
    /// Entries that can only become new tasks, because they have neither a batch to compare with nor a key, are
    /// inserted as hidden tasks immediately. Their commit then takes as long for a million entries as for one.
    ///
    /// - Parameter owner: the required owner of the staged batch; `nil` for any.
    /// - Returns: the number of entries in the staged batch so far.
    /// - Throws: ``StoreError/unknownStagedBatch(_:)``, ``StoreError/quota(_:)``,
    ///   ``StoreError/nearlyFull(free:reserved:)``.
    package func put(
        _ stagedBatch: Int64, _ entries: PreparedTasks, owner: UInt32? = nil, quota: Quota = Quota(), now: Milliseconds
    ) async throws(StoreError) -> Int {
        try checkRoom()
        let fresh = entries.tasks
        // The entries need not be durable yet: the commit of the staged batch, which promises durability, syncs them as
        // well.
        return try await writes.perform(weight: fresh.count, isLasting: false) { database in
            let staged = try database.stagedBatch(stagedBatch, owner: owner)
            // Entries keep their order: after a staged entry, all further entries are staged.
            var rest = fresh[...]
            if staged.batch == nil, try !database.hasStagedEntries(stagedBatch) {
                let free = fresh.prefix { $0.entry.key == nil }
                rest = rest[free.endIndex...]
                let ranges = try database.keepingRecords(of: [staged.owner], within: quota, room: {}) {
                    try database.insert(free, owner: staged.owner, stagedBatch: stagedBatch, now: now)
                }
                for range in ranges { try database.stage(range, stagedBatch: stagedBatch) }
            }
            try database.stage(rest, stagedBatch: stagedBatch, batch: staged.batch)
            let bytes = rest.reduce(0 as Int64) { $0.addingClamped($1.stagedBytes) }
            if !rest.isEmpty { try database.check(entries: staged.bytes.addingClamped(bytes), within: quota) }
            try database.run(
                "UPDATE staged_batch SET entries = entries + ?, bytes = bytes + ? WHERE id = ?",
                [fresh.count, bytes, stagedBatch])
            try database.checkStaged(quota, of: staged.owner)
            return staged.entries + fresh.count
        }
    }

    /// Returns the batch that a staged batch is synchronised with; `nil` if there is none or the staged batch does not
    /// exist.
    package func batch(ofStagedBatch stagedBatch: Int64, owner: UInt32) throws(StoreError) -> String? {
        try read { database in
            try database.firstRow(
                "SELECT batch FROM staged_batch WHERE id = ? AND owner = ? AND is_dropped = 0", [stagedBatch, owner]
            ) {
                try $0.textOrNil(0)
            } ?? nil
        }
    }

    /// Applies a staged batch in one transaction and removes it. A dry run reports the changes without making them and
    /// keeps the staged batch.
    ///
    /// In a batch, an entry is identified by its key, or else by kind, URL and output. An existing completed task stays
    /// unchanged, unless the entry asks to fetch its file again if it changed. Any other existing task is updated, and is made ready again if it failed or waits for the user.
    ///
    /// - Parameters:
    ///   - prune: whether to cancel the batch's tasks that no entry names and that have not ended, and to remove those
    ///     that completed and whose file was to be fetched again if it changed.
    ///   - receipt: the name for a ``StagedBatchReceipt`` stored in the same commit. If a receipt of that name exists
    ///     already, the staged batch is removed without any other effect.
    ///   - leaving: called with ``StagedBatchOutcome/moved`` before the commit, if it is not empty, because afterwards
    ///     the previous directories are no longer recorded anywhere. It may be called for a commit that fails, and
    ///     again for the next one.
    /// - Throws: ``StoreError/unknownStagedBatch(_:)``, ``StoreError/quota(_:)``,
    ///   ``StoreError/nearlyFull(free:reserved:)``.
    package func commitStagedBatch(
        _ stagedBatch: Int64, owner: UInt32, prune: Bool, dryRun: Bool, quota: Quota = Quota(), now: Milliseconds,
        receipt: String? = nil,
        leaving: @escaping @Sendable ([TaskID: TaskSpecification]) -> Void = { _ in }
    ) async throws(StoreError) -> StagedBatchOutcome {
        try await writes.perform(weight: CommitLimit.rowsInCommit) { database in
            let staged = try database.stagedBatch(stagedBatch, owner: owner)
            let application = StagedBatchMerge(stagedBatch: stagedBatch, owner: owner, batch: staged.batch, now: now)
            let batches = try quota.tasksPerBatch == nil ? [] : database.batches(ofStagedBatch: stagedBatch)
            // The staged data is written both to the log and to the tables.
            try self.checkRoom(for: staged.bytes.multipliedClamped(by: 2), in: database)
            let run = {
                let outcome = try database.keepingRecords(of: [owner], within: quota, room: {}) {
                    try application.run(in: database, prune: prune, plans: dryRun)
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
                try database.drop(stagedBatch)
                return StagedBatchOutcome()
            }
            let outcome = try run()
            try database.run("DELETE FROM staged_task_range WHERE staged_batch_id = ?", [stagedBatch])
            try database.drop(stagedBatch)
            if let receipt { try database.write(StagedBatchReceipt(outcome), named: receipt) }
            if !outcome.moved.isEmpty { leaving(outcome.moved) }
            return outcome
        }
    }

    /// Resets the byte counts and resume data of tasks; their other data and lifecycle stay unchanged.
    package func forgetBytes(of ids: [TaskID]) async throws(StoreError) {
        try await inParts(ids, ()) { database, id, _ in
            try database.forgetBytes(of: id)
            return 0
        }
    }

    /// Drops a staged batch.
    ///
    /// - Parameter owner: the required owner of the staged batch; `nil` for any.
    /// - Throws: ``StoreError/unknownStagedBatch(_:)``.
    package func abortStagedBatch(_ stagedBatch: Int64, owner: UInt32? = nil) async throws(StoreError) {
        try await writes.perform { database in
            _ = try database.stagedBatch(stagedBatch, owner: owner)
            try database.drop(stagedBatch)
        }
    }

    /// Deletes a part of the remaining data of committed and dropped staged batches.
    ///
    /// - Returns: whether there may be more to delete.
    package func sweep() async throws(StoreError) -> Bool {
        let hasSome = try read { database in
            try database.firstRow("SELECT EXISTS (SELECT 1 FROM staged_batch WHERE is_dropped)") {
                try $0.integer(0) != 0
            }
        }
        guard hasSome == true else { return false }
        return try await inSteps { try $0.sweep(limit: $1) }.rows > 0
    }
}

extension Database {
    fileprivate func stagedBatch(
        _ stagedBatch: Int64, owner: UInt32?
    ) throws -> (owner: UInt32, batch: String?, entries: Int, bytes: Int64) {
        let found = try firstRow(
            "SELECT owner, batch, entries, bytes FROM staged_batch WHERE id = ? AND is_dropped = 0", [stagedBatch]
        ) { row in
            (
                owner: try row.owner(0), batch: try row.textOrNil(1), entries: try row.int(2),
                bytes: try row.integer(3) as Int64
            )
        }
        guard let found, owner == nil || found.owner == owner else { throw StoreError.unknownStagedBatch(stagedBatch) }
        return found
    }

    /// Returns the batches of a staged batch's tasks and entries.
    fileprivate func batches(ofStagedBatch stagedBatch: Int64) throws -> Set<String> {
        Set(
            try rows(
                """
                SELECT batch FROM fair_share_group WHERE staged_batch_id = ?1 AND batch IS NOT NULL
                UNION SELECT batch FROM staged_entry WHERE staged_batch_id = ?1 AND batch IS NOT NULL
                """, [stagedBatch]
            ) { try $0.text(0) })
    }

    fileprivate func hasStagedEntries(_ stagedBatch: Int64) throws -> Bool {
        try firstRow("SELECT EXISTS (SELECT 1 FROM staged_entry WHERE staged_batch_id = ?)", [stagedBatch]) {
            try $0.integer(0) != 0
        } ?? false
    }

    private static let staging = """
        INSERT INTO staged_entry (
            id, \(StoredEntry.columnsWithBatch), path, state, reason, not_before, secrets, staged_batch_id)
        VALUES
        """

    /// Stores entries until their staged batch is committed.
    ///
    /// - Parameter batch: the staged batch's batch, which applies to each entry.
    fileprivate func stage(_ tasks: ArraySlice<FreshTask>, stagedBatch: Int64, batch: String?) throws {
        let newest = try firstRow("SELECT max(id) FROM staged_entry") { try $0.integerOrNil(0) } ?? nil
        let first = (newest ?? 0).addingClamped(1)
        try insert(tasks.indices, Self.staging, columns: 18) { index, row in
            var entry = tasks[index].entry
            if let batch { entry.setBatch(batch) }
            row.bind(first.addingClamped(Int64(index - tasks.startIndex)))
            row.bind(entry)
            row.bind(entry.batch)
            row.bind(tasks[index].path)
            row.bind(tasks[index].lifecycle)
            row.bind(tasks[index].secrets)
            row.bind(stagedBatch)
        }
        for (index, task) in tasks.enumerated() {
            guard let hashes = task.pieceHashes else { continue }
            try stagePieceHashes(ofEntry: first.addingClamped(Int64(index)), hashes)
        }
    }

    /// Records the range of a staged batch's tasks that are already inserted.
    fileprivate func stage(_ range: TaskRange, stagedBatch: Int64) throws {
        let (state, reason) = (range.state.rawValue, range.reason?.rawValue)
        try run(
            """
            UPDATE staged_task_range SET last = ?1
            WHERE staged_batch_id = ?2 AND last = ?3 - 1 AND state = ?4 AND reason IS ?5
                AND first = (SELECT max(first) FROM staged_task_range WHERE staged_batch_id = ?2)
            """, [range.ids.upperBound, stagedBatch, range.ids.lowerBound, state, reason])
        guard changesCount == 0 else { return }
        try run(
            "INSERT INTO staged_task_range (staged_batch_id, first, last, state, reason) VALUES (?, ?, ?, ?, ?)",
            [stagedBatch, range.ids.lowerBound, range.ids.upperBound, state, reason])
    }

    /// Marks a staged batch as dropped; its remaining data is deleted later in parts.
    fileprivate func drop(_ stagedBatch: Int64) throws {
        try run("UPDATE staged_batch SET is_dropped = 1 WHERE id = ?", [stagedBatch])
    }

    /// Deletes remaining data of one dropped staged batch.
    ///
    /// - Parameter limit: the maximum number of rows to delete.
    /// - Returns: `limit` if there may be more to delete; 0 if there is no dropped staged batch.
    fileprivate func sweep(limit: Int) throws -> Int {
        let stagedBatch = try firstRow("SELECT id FROM staged_batch WHERE is_dropped ORDER BY id LIMIT 1") {
            try $0.integer(0)
        }
        guard let stagedBatch else { return 0 }
        try run(
            "DELETE FROM staged_entry WHERE id IN (SELECT id FROM staged_entry WHERE staged_batch_id = ? LIMIT ?)",
            [stagedBatch, limit])
        guard changesCount == 0 else { return limit }
        let range = try firstRow(
            "SELECT first, last FROM staged_task_range WHERE staged_batch_id = ? ORDER BY first LIMIT 1", [stagedBatch]
        ) { (first: try $0.integer(0), last: try $0.integer(1)) }
        if let range {
            let end = min(range.last, range.first.addingClamped(Int64(limit) - 1))
            try run("DELETE FROM task WHERE id BETWEEN ? AND ?", [range.first, end])
            try run(
                "DELETE FROM staged_task_range WHERE staged_batch_id = ? AND first = ?", [stagedBatch, range.first])
            if end < range.last {
                try run(
                    "INSERT INTO staged_task_range (staged_batch_id, first, last, state) VALUES (?, ?, ?, '')",
                    [stagedBatch, end + 1, range.last])
            }
            return limit
        }
        try run("DELETE FROM staged_batch WHERE id = ?", [stagedBatch])
        return limit
    }
}
