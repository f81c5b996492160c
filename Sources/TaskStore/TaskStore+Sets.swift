import GRDB
import TaskModel

extension TaskStore {
    /// Begins a set of entries that ``commitSet(_:owner:prune:dryRun:now:leaving:)`` applies whole. It is kept in the
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
                DELETE FROM staged_set WHERE owner = ?1 AND id NOT IN (
                    SELECT id FROM staged_set WHERE owner = ?1 ORDER BY id DESC LIMIT ?2)
                """, [owner, Self.setsPerOwner])
            return number
        }
    }

    /// Adds entries to a set. They take the set's batch, where it has one.
    ///
    /// - Parameter owner: whose set it must be; `nil`: anyone's.
    /// - Returns: the number of entries in the set so far.
    /// - Throws: ``StoreError/unknownSet(_:)``.
    package func put(_ set: Int64, _ entries: [NewTask], owner: UInt32? = nil) async throws(StoreError) -> Int {
        try checkRoom()
        let identity = identity
        return try await writes.perform(weight: entries.count) { database in
            let staged = try database.stagedSet(set, owner: owner)
            for var entry in entries {
                if let batch = staged.batch { entry.specification.batch = batch }
                let columns = try StoredEntry(entry, identity: identity).arguments
                let secrets = try StoredJSON.encode(secrets: entry.secrets)
                try database.run(
                    Self.stageEntry,
                    StatementArguments(columns + [entry.path] + entry.standing.arguments + [secrets, set]))
                if let hashes = entry.specification.pieceHashes {
                    try database.stagePieceHashes(ofEntry: database.lastInsertedRowID, hashes)
                }
            }
            try database.run("UPDATE staged_set SET entries = entries + ? WHERE id = ?", [entries.count, set])
            return staged.entries + entries.count
        }
    }

    private static let stageEntry = """
        INSERT INTO staged_entry (\(StoredEntry.columns), path, state, reason, not_before, secrets, set_id)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """

    /// - Returns: the batch that a set is to be brought in line with; `nil`: none, or no such set.
    package func batch(ofSet set: Int64, owner: UInt32) throws(StoreError) -> String? {
        try read { database in
            try database.firstRow("SELECT batch FROM staged_set WHERE id = ? AND owner = ?", [set, owner]) {
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
    ///   - leaving: given ``SetOutcome/moved`` before the commit, where that is something: afterwards nothing would be
    ///     left that knows of what lies in the old directories. It may be called for a commit that then fails, and
    ///     once more for the next.
    /// - Throws: ``StoreError/unknownSet(_:)``.
    package func commitSet(
        _ set: Int64, owner: UInt32, prune: Bool, dryRun: Bool, now: Milliseconds,
        leaving: @escaping @Sendable ([TaskID: TaskSpecification]) -> Void = { _ in }
    ) async throws(StoreError) -> SetOutcome {
        try await writes.perform(weight: Self.rowsInCommit) { database in
            let staged = try database.stagedSet(set, owner: owner)
            let application = SetApplication(set: set, owner: owner, batch: staged.batch, now: now)
            guard !dryRun else {
                var outcome = try database.undoing { try application.run(in: database, prune: prune) }
                // Numbers that were never given.
                outcome.idRanges = []
                return outcome
            }
            let outcome = try application.run(in: database, prune: prune)
            try database.run("DELETE FROM staged_set WHERE id = ?", [set])
            if !outcome.moved.isEmpty { leaving(outcome.moved) }
            return outcome
        }
    }

    /// What these tasks had fetched counts no longer; what they are and where they stand stays.
    package func forgetBytes(of ids: [TaskID]) async throws(StoreError) {
        try await writes.perform(weight: ids.count) { database in
            for id in ids { try database.forgetBytes(of: id) }
        }
    }

    /// Forgets a set.
    ///
    /// - Parameter owner: whose set it must be; `nil`: anyone's.
    /// - Throws: ``StoreError/unknownSet(_:)``.
    package func abortSet(_ set: Int64, owner: UInt32? = nil) async throws(StoreError) {
        try await writes.perform { database in
            _ = try database.stagedSet(set, owner: owner)
            try database.run("DELETE FROM staged_set WHERE id = ?", [set])
        }
    }
}

extension Database {
    fileprivate func stagedSet(_ set: Int64, owner: UInt32?) throws -> (batch: String?, entries: Int) {
        let found = try firstRow("SELECT owner, batch, entries FROM staged_set WHERE id = ?", [set]) { row in
            (owner: try row.owner(0), batch: try row.textOrNil(1), entries: try row.int(2))
        }
        guard let found, owner == nil || found.owner == owner else { throw StoreError.unknownSet(set) }
        return (found.batch, found.entries)
    }
}
