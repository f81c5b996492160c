import Dispatch
import GRDB
import Glibc
import Synchronization
import TaskModel

/// A maker of copies of the database, one after the other, on a thread of its own.
///
/// A copy shows the database at one moment: a single snapshot is read from the beginning to the end, while the writer
/// goes on. SQLite keeps the log until the snapshot is released.
final class BackupMaker: Sendable {
    /// The name of the file while the copy is being made.
    private static let name = "dld.db.backing-up"
    /// The number of pages copied between two checks for an end.
    private static let pagesPerStep: CInt = 256
    /// The number of bytes after which the copy is written to the disk. Otherwise the system would collect the whole
    /// copy in memory, and a commit of the store would have to wait until all of it is written.
    private static let bytesPerSync: Int64 = 16 << 20

    private enum State {
        case idle
        case copying(DatabaseQueue)
        /// The end of copying: no further copy is made.
        case ended
    }

    private let directory: String
    private let queue = DispatchQueue(label: "dld.backup", qos: .utility)
    private let places = BackupPlaces()
    private let state = Mutex(State.idle)

    init(directory: String) { self.directory = directory }

    /// Removes what a daemon left that ended while it made a copy.
    static func removeDraft(in directory: String) {
        DatabaseFiles.remove("\(directory)/\(name)")
    }

    /// Ends the copy that is being made, and refuses all further ones.
    func end() {
        let copying = state.withLock { state -> DatabaseQueue? in
            defer { state = .ended }
            return if case .copying(let copy) = state { copy } else { nil }
        }
        copying?.interrupt()
    }

    /// Makes a copy.
    ///
    /// - Parameters:
    ///   - read: performs its argument on a reader, within one transaction.
    ///   - check: throws if this number of bytes has no room on the disk.
    func make(
        read: @escaping @Sendable ((Database) throws -> Int) throws(StoreError) -> Int,
        check: @escaping @Sendable (Int64) throws(StoreError) -> Void
    ) async throws(StoreError) -> StoreBackup {
        let place = try places.take()
        let result: Result<StoreBackup, StoreError> = await withCheckedContinuation { continuation in
            queue.async { [self] in
                do {
                    continuation.resume(returning: .success(try copy(place, read, check)))
                } catch {
                    continuation.resume(returning: .failure(hasEnded ? .closed : StoreError(error)))
                }
            }
        }
        return try result.get()
    }

    private var hasEnded: Bool { state.withLock { if case .ended = $0 { true } else { false } } }

    // MARK: One copy

    private func copy(
        _ place: BackupPlaces.Place, _ read: ((Database) throws -> Int) throws(StoreError) -> Int,
        _ check: @escaping @Sendable (Int64) throws(StoreError) -> Void
    ) throws -> StoreBackup {
        Self.removeDraft(in: directory)
        let path = "\(directory)/\(Self.name)"
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw DatabaseFiles.failure(path) }
        defer { Self.removeDraft(in: directory) }
        do {
            let content = try fill(path, descriptor, read, check)
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw DatabaseFiles.failure(path) }
            return StoreBackup(content, bytes: Int64(status.st_size), descriptor: descriptor, place: place)
        } catch {
            _ = close(descriptor)  // the copy is not used
            throw error
        }
    }

    private func fill(
        _ path: String, _ descriptor: Int32, _ read: ((Database) throws -> Int) throws(StoreError) -> Int,
        _ check: @escaping @Sendable (Int64) throws(StoreError) -> Void
    ) throws -> StoreBackup.Content {
        var configuration = Configuration()
        configuration.label = "dld.backup"
        let copy = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? copy.close() }
        try begin(copy)
        defer { endCopying() }
        return try copy.writeWithoutTransaction { database in
            // Nobody uses the copy before it is complete, so that it needs neither a journal nor locks.
            try database.execute(
                sql: "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF")
            let tasks = try read { source in
                // The first query fixes the snapshot.
                let tasks = try source.firstRow("SELECT count(*) FROM task") { try $0.int(0) } ?? 0
                let pages = try source.firstRow("PRAGMA page_count") { try $0.integer(0) as Int64 } ?? 0
                try check(pages.multipliedClamped(by: Database.pageSize))
                try copyPages(from: source, to: database, descriptor, path)
                return tasks
            }
            // The snapshot is released by now; what follows takes as long as it takes.
            return try complete(database, tasks: tasks)
        }
    }

    private func copyPages(
        from source: Database, to database: Database, _ descriptor: Int32, _ path: String
    ) throws {
        var unsynced: Int64 = 0
        try source.backup(to: database, pagesPerStep: Self.pagesPerStep) { [self] _ in
            if hasEnded { throw StoreError.closed }
            unsynced += Int64(Self.pagesPerStep) * Database.pageSize
            guard unsynced >= Self.bytesPerSync else { return }
            unsynced = 0
            guard fdatasync(descriptor) == 0 else { throw DatabaseFiles.failure(path) }
        }
    }

    /// Turns the copied pages into a database that consists of a single file and is known to differ from its original.
    private func complete(_ database: Database, tasks: Int) throws -> StoreBackup.Content {
        // The copied header says that there is a log.
        guard try String.fetchOne(database, sql: "PRAGMA journal_mode = MEMORY") == "memory" else {
            throw StoreError.other("the copy of the database keeps its log")
        }
        try database.inTransaction {
            try JournalIdentity.renew(in: database)
            // A rescued copy of the original belongs to the original's opening.
            try database.setMeta("opening", to: .random(in: 1...Int64.max))
            return .commit
        }
        let found = try String.fetchOne(database, sql: "PRAGMA integrity_check(1)")
        guard found == "ok" else { throw StoreError.corrupt(found ?? "its copy is unreadable") }
        return StoreBackup.Content(
            tasks: tasks, lastEvent: try database.newestNumber(in: "event"),
            journal: try JournalIdentity(database).name)
    }

    private func begin(_ copy: DatabaseQueue) throws(StoreError) {
        let hasEnded = state.withLock { state in
            if case .ended = state { return true }
            state = .copying(copy)
            return false
        }
        if hasEnded { throw .closed }
    }

    private func endCopying() {
        state.withLock { if case .copying = $0 { $0 = .idle } }
    }
}
