import GRDB
import Glibc
import TaskModel

/// The tasks, their secrets and the journal of events, in the SQLite database `dld.db`.
///
/// One connection writes and checkpoints; readers see snapshots and never wait for it. What an asynchronous
/// method returned is on disk: the log is synced at every commit, which many callers share.
package final class TaskStore: Sendable {
    /// Rows in one commit, save where a single call needs more: a commit must not keep checkpoints waiting.
    /// ``CommitLimit`` bounds it by its bytes as well.
    package static let rowsInCommit = 5_000
    /// Seconds to wait for another process, such as one that makes a backup.
    static let busyTimeout = 5.0
    /// Bytes that the write-ahead log keeps once a checkpoint has emptied it.
    static let logLimit = 64 << 20

    /// Sets that one owner may be putting together at a time; beginning another forgets the oldest.
    package static let setsPerOwner = 8

    let directory: String
    /// 8 hexadecimal digits made with the database; they stand in the names of part files.
    package let identity: String
    /// The newest task that there was when the store was opened: later ones have known no other life of the daemon.
    package let newestTaskAtOpening: TaskID
    /// What a person should know of how it was opened.
    package let notes: [String]

    private let watch: StoreWatch
    let pool: DatabasePool
    let writes: WriteQueue

    /// Opens the database in `directory`, or makes it there (0600), and brings its schema up to date.
    ///
    /// - Parameter report: told why nothing is taken any more, once the database has lost its name.
    /// - Throws: ``StoreError/newer(path:schema:)`` and ``StoreError/notADatabase(path:)`` for a file that is left
    ///   as it was.
    package init(
        directory: String, report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StoreError) {
        self.directory = directory
        notes = try RescuedStore.takeUp(in: directory)
        let file = StoreFile(directory: directory)
        try file.prepare()
        do {
            pool = try DatabasePool(path: file.path, configuration: Self.configuration)
            try pool.writeWithoutTransaction { database in
                // Not in `prepareDatabase`: GRDB sets NORMAL after that, and NORMAL loses acknowledged commits.
                try database.execute(sql: "PRAGMA synchronous = FULL")
                guard try Int64.fetchOne(database, sql: "PRAGMA synchronous") == 2,
                    try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal"
                else { throw StoreError.other("SQLite does not sync its log") }
                try database.execute(sql: "PRAGMA secure_delete = ON; PRAGMA journal_size_limit = \(Self.logLimit)")
                // A statement of many rows keeps what it may have to take back; ``rowsInCommit`` bounds how much. In
                // files, each of them would be made and deleted hundreds of times a second.
                try database.execute(sql: "PRAGMA temp_store = MEMORY")
            }
            try Schema.migrator.migrate(pool)
            (identity, newestTaskAtOpening) = try pool.writeWithoutTransaction { database in
                // Nobody can commit a set that was begun before the daemon's last end.
                try database.execute(sql: "UPDATE staged_set SET is_dropped = 1")
                let sql = "SELECT value FROM meta WHERE name = 'identity'"
                guard let identity = try String.fetchOne(database, sql: sql), identity.utf8.count == 8 else {
                    throw StoreError.corrupt("it has no identity")
                }
                return (identity, TaskID(try database.newestNumber(in: "task")))
            }
            try Self.markOpening(of: pool)
            watch = StoreWatch(directory: directory, names: try StoreNames(path: file.path), report: report)
        } catch {
            throw StoreError(error, path: file.path)
        }
        writes = WriteQueue(pool: pool, watch: watch)
    }

    /// Notes, in the database itself and not in its log alone, that it was opened once more: a copy that was saved of what
    /// a daemon held is known to be newer where nobody opened the database after that one.
    ///
    /// A disk without room does not keep the store from being opened.
    private static func markOpening(of pool: DatabasePool) throws {
        do {
            try pool.writeWithoutTransaction { database in
                try database.setMeta("opening", to: .random(in: 1...Int64.max))
                _ = try database.checkpoint(.passive)
            }
        } catch {
            guard StoreError(error) == .full else { throw error }
        }
    }

    /// KiB of pages that each of the connections that read may keep.
    private static let readersCache = 256

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "dld.store"
        configuration.busyMode = .timeout(busyTimeout)
        // A rollback that fails on a dying disk must not end the process; `WriteQueue` tries it again.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { database in
            // Neither what a schema calls nor what a page claims is trusted.
            try database.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
            // Pages stay in a connection's own memory for as long as it is open, and in the system's cache besides. What a
            // reader needs again and again is little.
            if database.configuration.readonly {
                try database.execute(sql: "PRAGMA cache_size = -\(Self.readersCache)")
            }
        }
        return configuration
    }

    /// Finishes the writes already asked for, empties the log into the database and lets go of it.
    ///
    /// A second call does nothing.
    package func close() throws(StoreError) {
        guard writes.close() else { return }
        // Whoever looked last may have done so before the names were lost.
        _ = pool.writeWithoutTransaction { watch.refusal($0) }
        // Somebody else's log has that name: SQLite would remove it. The end of the process closes the files too.
        guard watch.mayCheckpoint else { return _ = Unmanaged.passRetained(pool) }
        // Readers first: the writer, as the last one, then removes the log.
        pool.releaseMemory()
        do {
            // A checkpoint that fails loses nothing: the log is there at the next opening.
            defer { try? pool.close() }
            _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        } catch {
            throw StoreError(error)
        }
    }

    /// What keeps the store from taking anything, and what helps; `nil` where nothing does.
    package var problem: String? { watch.problem }

    /// For whoever stops or removes something before the store is told of it.
    ///
    /// - Throws: ``StoreError/displaced(_:)`` where the store takes nothing now.
    package func checkTakes() throws(StoreError) {
        guard watch.isDisplaced else { return }
        if let refusal = pool.writeWithoutTransaction({ watch.refusal($0) }) { throw refusal }
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        guard watch.isDisplaced else { return try translated { try pool.read(body) } }
        // A reader that was opened now would find another database, or none.
        return try translated {
            try pool.writeWithoutTransaction { database in
                _ = watch.refusal(database)  // what it makes sure of is that there is a copy
                return try body(database)
            }
        }
    }
}
