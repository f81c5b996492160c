import CSQLite
import GRDB
import Glibc
package import TaskModel

/// The tasks, their secrets and the journal of events, in the SQLite database `dld.db`.
///
/// A single connection writes and checkpoints; readers see snapshots and never wait for it. When an asynchronous method
/// returns, its changes are on disk: the log is synced at every commit, and one commit serves many callers.
package final class TaskStore: Sendable {
    /// The maximum size in bytes to which the write-ahead log is truncated after a checkpoint.
    static let logLimit = 64 << 20

    /// The maximum number of uncommitted staged batches per owner; beginning another drops the oldest.
    package static let stagedBatchesPerOwner = 8

    let directory: String
    /// The database's identity, created with it: 8 hexadecimal digits, which are part of the names of part files.
    package let identity: String
    /// The identity of the journal of events.
    package let journal: JournalIdentity
    /// The newest task id when the store was opened; tasks with larger ids were added by this run of the daemon.
    package let newestTaskAtOpening: TaskID
    /// Messages for the administrator about the opening of the store.
    package let notes: [String]

    private let readGate = ReadGate()
    private let watch: StoreWatch
    let backups: BackupMaker
    let pool: DatabasePool
    let writes: WriteQueue

    /// Opens the database in `directory`, creates it there if needed (mode 0600), and migrates its schema.
    ///
    /// - Parameters:
    ///   - version: the program's version, which an earlier program names when it refuses the database.
    ///   - report: called with a message when the paths of the database no longer refer to the open files and the store
    ///     rejects changes.
    /// - Throws: among others ``StoreError/newer(path:schema:version:)``, ``StoreError/development(path:)`` and
    ///   ``StoreError/notADatabase(path:)``, in which case the file is not modified.
    package init(
        directory: String, version: String? = nil, report: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(StoreError) {
        self.directory = directory
        Self.configureSQLite
        backups = BackupMaker(directory: directory)
        BackupMaker.removeDraft(in: directory)
        let file = StoreFile(directory: directory)
        try file.checkLog()
        notes = try RescuedStore.recover(in: directory)
        try file.prepare()
        do {
            pool = try DatabasePool(path: file.path, configuration: Self.configuration)
            try pool.writeWithoutTransaction { database in
                // This is not done in `prepareDatabase`, because GRDB sets NORMAL after that, which loses acknowledged
                // commits.
                try database.execute(sql: "PRAGMA synchronous = FULL")
                guard try Int64.fetchOne(database, sql: "PRAGMA synchronous") == 2,
                    try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal"
                else { throw StoreError.other("SQLite does not sync its log; check the SQLite library") }
                try database.execute(sql: "PRAGMA secure_delete = ON; PRAGMA journal_size_limit = \(Self.logLimit)")
                // A statement with many rows keeps a statement journal for its rollback; ``CommitLimit`` limits its
                // size. If kept in files, such journals would be created and deleted hundreds of times per second.
                try database.execute(sql: "PRAGMA temp_store = MEMORY")
            }
            try Schema.migrator.migrate(pool)
            (identity, journal, newestTaskAtOpening) = try pool.writeWithoutTransaction { database in
                // A staged batch that was begun before the last end of the daemon can no longer be committed.
                try database.execute(sql: "UPDATE staged_batch SET is_dropped = 1")
                let sql = "SELECT value FROM meta WHERE name = 'identity'"
                guard let identity = try String.fetchOne(database, sql: sql), identity.utf8.count == 8 else {
                    throw StoreError.corrupt("its table meta has no valid identity")
                }
                return (identity, try JournalIdentity(database), TaskID(try database.newestNumber(in: "task")))
            }
            try Self.markOpening(of: pool, version: version)
            let watch = StoreWatch(directory: directory, names: try StoreNames(path: file.path), report: report)
            if let refusal = pool.writeWithoutTransaction({ watch.refusal($0, isAfterChange: true) }) { throw refusal }
            self.watch = watch
        } catch {
            throw StoreError(error, path: file.path)
        }
        writes = WriteQueue(pool: pool, watch: watch)
    }

    /// Records the opening in the database file itself, not only in its log. A rescued copy of a database is known to
    /// be newer if the database has not been opened since the opening that the copy was made from.
    ///
    /// A full disk does not prevent the store from being opened.
    private static func markOpening(of pool: DatabasePool, version: String?) throws {
        do {
            try pool.writeWithoutTransaction { database in
                try database.setMeta("opening", to: .random(in: 1...Int64.max))
                if let version { try database.setMetaText("version", to: version) }
                _ = try database.checkpoint(.passive)
            }
        } catch {
            guard StoreError(error) == .full else { throw error }
        }
    }

    /// Configures SQLite for the process, once and before its first use.
    private static let configureSQLite: Void = {
        _ = sqlite_disable_memory_statistics()  // without effect where SQLite is in use, and then only slower
    }()

    /// The page cache of each reader connection in KiB.
    private static let readersCache = 256

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "dld.store"
        configuration.busyMode = .timeout(StoreFile.busyTimeout)
        // A failed rollback on a failing disk must not end the process; `WriteQueue` retries it.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { database in
            // The schema's functions and the cells of pages are not trusted.
            try database.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
            // A connection keeps its cached pages in its own memory while it is open, in addition to the system's
            // cache. Readers need few pages repeatedly, so a small cache is sufficient.
            if database.configuration.readonly {
                try database.execute(sql: "PRAGMA cache_size = -\(Self.readersCache)")
            }
        }
        return configuration
    }

    /// Completes the enqueued writes, ends the present reads, checkpoints the log into the database and closes it.
    ///
    /// Further calls have no effect.
    package func close() throws(StoreError) {
        guard writes.close() else { return }
        backups.end()
        readGate.close()
        // The files may have been displaced after the last check.
        _ = pool.writeWithoutTransaction { watch.refusal($0) }
        // Another file has the log's path, and SQLite would remove it on closing. The files are closed when the process
        // ends.
        guard watch.mayCheckpoint else { return _ = Unmanaged.passRetained(pool) }
        // Readers are closed first; the writer, as the last connection, then removes the log.
        pool.releaseMemory()
        do {
            // A failed checkpoint loses nothing: the log is used at the next opening.
            defer { try? pool.close() }
            _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        } catch {
            throw StoreError(error)
        }
    }

    /// The fault for which the store rejects changes, with its remedy; `nil` if there is none.
    package var problem: String? { watch.problem }

    /// Checks that the store accepts changes, before the caller stops or removes something that is stored afterwards.
    ///
    /// - Throws: ``StoreError/displaced(_:)`` if the store currently rejects changes.
    package func checkAcceptsChanges() throws(StoreError) {
        guard watch.isDisplaced else { return }
        if let refusal = pool.writeWithoutTransaction({ watch.refusal($0) }) { throw refusal }
    }

    /// Performs `body` on a snapshot of the database.
    ///
    /// - Parameter budget: the work that the read may take.
    func read<Value>(
        within budget: ReadBudget = .own, _ body: (Database) throws -> Value
    ) throws(StoreError) -> Value {
        try translated {
            try withUnsafeCurrentTask { caller in
                try readGate.read {
                    func bounded(_ database: Database) throws -> Value {
                        try budget.keep(on: database, for: caller, isClosing: { self.readGate.isClosing }, body)
                    }
                    guard watch.isDisplaced else {
                        return try pool.unsafeRead { database in try database.inSnapshot { try bounded(database) } }
                    }
                    // A new reader connection would open another database, or none.
                    return try pool.writeWithoutTransaction { database in
                        _ = watch.refusal(database)  // the call ensures that a copy exists
                        return try bounded(database)
                    }
                }
            }
        }
    }

    /// Returns ids as a JSON array, so that any number of ids is a single bound value.
    static func list(_ ids: some Sequence<TaskID>) -> String { list(ids.lazy.map(\.rawValue)) }

    static func list(_ numbers: some Sequence<Int64>) -> String {
        "[" + numbers.map { String($0) }.joined(separator: ",") + "]"
    }
}
