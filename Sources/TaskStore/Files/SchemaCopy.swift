import GRDB
import Glibc
import Synchronization
package import TaskModel

/// The copy of a database before its schema is updated, with which an earlier program can go on:
/// `dld.db.schema-vNUMBER` in the state directory, after the schema that it has.
///
/// A further copy replaces the former one.
struct SchemaCopy {
    /// The age in seconds at which a copy is removed. It contains the secrets of tasks that have been removed since.
    static let maximumAge: Int64 = 7 * 86_400

    private static let prefix = "dld.db.schema-"
    private static let draft = "dld.db.copying-schema"

    let directory: String

    /// Makes a copy, unless no schema step is due.
    ///
    /// A copy of an earlier attempt is kept: the update that followed it was interrupted, and the database may already
    /// have some of the new steps.
    ///
    /// - Parameter room: the space on the disk; `nil` if it cannot be determined.
    /// - Returns: a message for the administrator; `nil` if no schema step is due.
    /// - Throws: ``StoreError/noRoom(_:)`` if there is no room for the copy and a step that is due loses data. Without
    ///   room for a copy, other steps are carried out without one.
    func make(of pool: DatabasePool, room: DiskRoom?) throws -> String? {
        remove(Self.draft)
        let applied = try pool.read { try Schema.migrator.appliedIdentifiers($0) }
        let due = Schema.migrator.migrations.filter { !applied.contains($0) }
        // GRDB applies the steps in order.
        guard let present = Schema.migrator.migrations.last(where: applied.contains), let newest = due.last else {
            return nil
        }
        let (opening, pages) = try pool.read { database in
            (
                try database.meta("opening"),
                try database.firstRow("PRAGMA page_count") { try $0.integer(0) as Int64 } ?? 0
            )
        }
        let name = Self.prefix + present
        let copies = names()
        // Before its first step was committed, the database is as it was, and a new copy is as good.
        if let kept = copies.first(where: { $0 != name && isCopy($0, ofOpening: opening) }) {
            return "the database's schema is being updated to \(newest); \(kept) is the database before the update"
        }
        let bytes = pages.multipliedClamped(by: Database.pageSize)
        if let room, !room.isAmple(for: bytes) {
            guard Schema.losesData(due) else {
                return "the database's schema is being updated to \(newest) without a copy of the database, for which "
                    + "the state directory has no room"
            }
            throw StoreError.noRoom(
                "the database cannot be updated to schema \(newest), because \(room.lack(ofCopy: bytes, in: directory)); "
                    + "free some space and start the daemon again")
        }
        try copy(pool, to: name)
        for other in copies where other != name { remove(other) }
        return "the database's schema is being updated to \(newest); \(name) is the database before the update, and "
            + "is removed after \(Self.maximumAge / 86_400) days"
    }

    /// Returns the time at which a copy is old enough to be removed; `nil` if there is none.
    func expiry() -> Milliseconds? {
        names().compactMap { name in
            var status = stat()
            guard lstat("\(directory)/\(name)", &status) == 0 else { return nil }
            return Milliseconds(status.st_mtim.tv_sec).addingClamped(Self.maximumAge).multipliedClamped(by: 1_000)
        }.min()
    }

    /// Removes the copies.
    func remove() {
        for name in names() { remove(name) }
    }

    // MARK: Files

    private func copy(_ pool: DatabasePool, to name: String) throws {
        let path = "\(directory)/\(Self.draft)"
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw DatabaseFiles.failure(path) }
        defer {
            _ = close(descriptor)  // synced below
            remove(Self.draft)
        }
        try fill(path, from: pool)
        guard fsync(descriptor) == 0 else { throw DatabaseFiles.failure(path) }
        guard rename(path, "\(directory)/\(name)") == 0 else { throw DatabaseFiles.failure("\(directory)/\(name)") }
        try DatabaseFiles.synchronize(directory)
    }

    private func fill(_ path: String, from pool: DatabasePool) throws {
        let copy = try DatabaseQueue(path: path)
        defer { try? copy.close() }
        try pool.backup(to: copy)
        try copy.writeWithoutTransaction { database in
            // The copied header says that there is a log.
            guard try String.fetchOne(database, sql: "PRAGMA journal_mode = DELETE") == "delete" else {
                throw StoreError.other("the copy of the database keeps its log")
            }
            // Events after the copy differ from those of the original. Schemas before v15 have no identities for them.
            if try database.tableExists("journal_origin"),
                try database.columns(in: "journal_origin").contains(where: { $0.name == "number" })
            {
                try database.inTransaction {
                    try JournalIdentity.renew(in: database)
                    return .commit
                }
            }
            let found = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
            guard found == "ok" else { throw StoreError.corrupt(found ?? "its copy is unreadable") }
        }
    }

    private func remove(_ name: String) { DatabaseFiles.remove("\(directory)/\(name)") }

    private func names() -> [String] {
        DatabaseFiles.names(in: directory).filter { name in
            name.hasPrefix(Self.prefix) && !DatabaseFiles.companions.contains(where: name.hasSuffix)
        }
    }

    /// Returns whether a file is a copy of the database as it was since an opening of it.
    private func isCopy(_ name: String, ofOpening opening: Int64?) -> Bool {
        (try? DatabaseFiles.read("\(directory)/\(name)") { try $0.meta("opening") == opening }) ?? false
    }
}

extension TaskStore {
    /// Removes the copy from before the last update of the schema if it is old enough.
    ///
    /// - Returns: the time at which a copy is to be removed; `nil` if there is none.
    package func removeExpiredSchemaCopy(now: Milliseconds) -> Milliseconds? {
        schemaCopyExpiry.withLock { expiry in
            guard let time = expiry, time <= now else { return expiry }
            SchemaCopy(directory: directory).remove()
            expiry = nil
            return nil
        }
    }
}
