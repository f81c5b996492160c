import GRDB
import TaskModel

extension TaskStore {
    /// Begins a set of entries that ``commitSet(_:owner:prune:dryRun:quota:now:receipt:leaving:)`` applies whole. It is kept in the
    /// database, and is gone when the store is opened again, or when its owner has begun
    /// ``TaskStore/setsPerOwner`` others.
    ///
    /// - Parameter batch: the batch to bring in line with the entries; `nil`: every entry becomes a new task.
    /// - Returns: the set's number.
    package func beginSet(owner: UInt32, batch: String?) async throws(StoreError) -> Int64 {
        try checkRoom()
        return try await writes.perform { database in
            try database.run("INSERT INTO staged_set (owner, batch) VALUES (?, ?)", [owner, batch])
            let number = database.lastInsertedRowID
            // What clients that went away have left.
            try database.run(
                """
                UPDATE staged_set SET is_dropped = 1 WHERE owner = ?1 AND is_dropped = 0 AND id NOT IN (
                    SELECT id FROM staged_set WHERE owner = ?1 AND is_dropped = 0 ORDER BY id DESC LIMIT ?2)
                """, [owner, Self.setsPerOwner])
            return number
        }
    }

    /// Brings tasks into the form in which they are written: not on the writer's thread, which others wait for.
    package func prepare(_ tasks: [NewTask]) throws(StoreError) -> PreparedTasks {
        var prepared = PreparedTasks()
        prepared.tasks.reserveCapacity(tasks.count)
        var rests = StoredEntry.Rests()
        for index in tasks.indices {
            prepared.tasks.append(try FreshTask(tasks[index], identity: identity, rests: &rests))
        }
        return prepared
    }

    /// Adds entries to a set. They take the set's batch, where it has one.
    ///
    /// What can only become new tasks, having neither a batch to be compared with nor a key, is put in its place among
    /// the tasks at once, hidden: a commit then takes no longer for a million than for one.
    ///
    /// - Parameter owner: whose set it must be; `nil`: anyone's.
    /// - Returns: the number of entries in the set so far.
    /// - Throws: ``StoreError/unknownSet(_:)``, ``StoreError/quota(_:)``, ``StoreError/nearlyFull(free:reserved:)``.
    package func put(
        _ set: Int64, _ entries: PreparedTasks, owner: UInt32? = nil, quota: Quota = Quota(), now: Milliseconds
    ) async throws(StoreError) -> Int {
        try checkRoom()
        let fresh = entries.tasks
        // What it becomes is promised by the commit of the set, which brings it to the disk.
        return try await writes.perform(weight: fresh.count, isLasting: false) { database in
            let staged = try database.stagedSet(set, owner: owner)
            // Entries keep their order: behind one that is staged all are.
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

    /// - Returns: the batch that a set is to be brought in line with; `nil`: none, or no such set.
    package func batch(ofSet set: Int64, owner: UInt32) throws(StoreError) -> String? {
        try read { database in
            try database.firstRow(
                "SELECT batch FROM staged_set WHERE id = ? AND owner = ? AND is_dropped = 0", [set, owner]
            ) {
                try $0.textOrNil(0)
            } ?? nil
        }
    }

    /// Applies a set in one transaction, all or nothing, and forgets it; a dry run tells what would happen,
    /// changes nothing and keeps the set.
    ///
    /// In a batch, an entry is known by its key, otherwise by kind, URL and output. A known task that is completed
    /// stays; another takes over what differs, and what had failed or waits for a person is ready again.
    ///
    /// - Parameters:
    ///   - prune: cancel the batch's tasks that no entry names and that have not ended.
    ///   - receipt: a name to write a ``SetReceipt`` under, in the same commit. Where there is one of that name already,
    ///     the set is forgotten and nothing else happens.
    ///   - leaving: given ``SetOutcome/moved`` before the commit, where that is something: afterwards nothing would be
    ///     left that knows of what lies in the old directories. It may be called for a commit that then fails, and
    ///     once more for the next.
    /// - Throws: ``StoreError/unknownSet(_:)``, ``StoreError/quota(_:)``, ``StoreError/nearlyFull(free:reserved:)``.
    package func commitSet(
        _ set: Int64, owner: UInt32, prune: Bool, dryRun: Bool, quota: Quota = Quota(), now: Milliseconds,
        receipt: String? = nil,
        leaving: @escaping @Sendable ([TaskID: TaskSpecification]) -> Void = { _ in }
    ) async throws(StoreError) -> SetOutcome {
        try await writes.perform(weight: Self.rowsInCommit) { database in
            let staged = try database.stagedSet(set, owner: owner)
            let application = SetApplication(set: set, owner: owner, batch: staged.batch, now: now)
            let batches = try quota.tasksPerBatch == nil ? [] : database.batches(ofSet: set)
            // What is staged comes to the log and to the tables once more.
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
                // Numbers that were never given.
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

    /// What these tasks had fetched counts no longer; what they are and where they stand stays.
    package func forgetBytes(of ids: [TaskID]) async throws(StoreError) {
        try await inParts(ids, ()) { database, id, _ in
            try database.forgetBytes(of: id)
            return 0
        }
    }

    /// Forgets a set.
    ///
    /// - Parameter owner: whose set it must be; `nil`: anyone's.
    /// - Throws: ``StoreError/unknownSet(_:)``.
    package func abortSet(_ set: Int64, owner: UInt32? = nil) async throws(StoreError) {
        try await writes.perform { database in
            _ = try database.stagedSet(set, owner: owner)
            try database.drop(set)
        }
    }

    /// Deletes a part of what sets have left that were committed or dropped.
    ///
    /// - Returns: whether there may be more.
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

    /// Those that the tasks and entries of a set are to belong to.
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

    /// Keeps entries until their set is committed.
    ///
    /// - Parameter batch: the set's, which is that of each entry.
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

    /// Notes that tasks of a set are in their places.
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

    /// What a set has left is swept up later, a part at a time.
    fileprivate func drop(_ set: Int64) throws {
        try run("UPDATE staged_set SET is_dropped = 1 WHERE id = ?", [set])
    }

    /// - Parameter limit: rows to delete at most.
    /// - Returns: how many were deleted: `limit` where there may be more.
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
