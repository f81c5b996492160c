import GRDB

/// An error of the store. Its description states what to do next.
package enum StoreError: Error, Sendable, Equatable {
    /// The file system of the state directory is full. The changes of the call were rolled back.
    case full
    /// The file system of the state directory has too little free space for more tasks, in bytes. Existing tasks
    /// continue.
    case nearlyFull(free: Int64, reserved: Int64)
    /// The file system of the state directory has too little free space for a copy of the database. Nothing was written.
    case noRoom(String)
    /// The database's content is inconsistent.
    case corrupt(String)
    /// The database was written by a newer program; it was not modified. The version is that of the program that opened
    /// it last; `nil` if it is not known.
    case newer(path: String, schema: String, version: String?)
    /// The database was written by a version that was developed before the first release; it was not modified.
    case development(path: String)
    /// The file is not a database of dld; it was not modified.
    case notADatabase(path: String)
    /// The file is a copy that was put beside the log of another database; neither was modified.
    case foreignLog(path: String)
    /// The database is locked by another process.
    case busy
    /// The system failed to open, read or write the file.
    case io(String)
    /// The staged batch does not exist, or belongs to another user.
    case unknownStagedBatch(Int64)
    /// A limit on the number or size of tasks would be exceeded; the text names the limit.
    case quota(String)
    /// A task would depend on itself; the text names the dependency that would close the cycle.
    case cycle(String)
    /// The paths of the database no longer refer to the open files, so that changes would be lost. The text states the
    /// cause and the remedy.
    case displaced(String)
    /// The database does not exist, although other files show that there was one; nothing was modified.
    case missing(String)
    /// The store was closed, or the caller that asked is gone.
    case closed
    /// A read exhausted its budget.
    case tooCostly
    case other(String)
}

extension StoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .full:
            "the file system of the state directory is full; free some space and try again"
        case .nearlyFull(let free, let reserved):
            "the file system of the state directory is almost full: \(free / 1_024) KiB are free, and "
                + "\(reserved / 1_024) KiB are reserved for existing tasks; free some space and try again"
        case .corrupt(let message):
            "the database is damaged (\(message)); stop the daemon, keep a copy of dld.db and restore a backup"
        case .newer(let path, let schema, let version):
            "\(path) was written by a newer dld (\(version.map { "version \($0), " } ?? "")schema \(schema)); install "
                + "that version or newer, or name another state directory"
        case .development(let path):
            "\(path) was written by an earlier development version of dld, whose database this version cannot read; "
                + "nothing was changed. Finish its tasks with that version, or move the file away to begin with an "
                + "empty database"
        case .notADatabase(let path):
            "\(path) is not a database of dld; move it away or name another state directory"
        case .foreignLog(let path):
            "\(path) is a copy, and \(path)-wal is the log of the database that was there before, which would damage it; "
                + "move \(path)-wal and \(path)-shm away and start again"
        case .busy:
            "another process has locked the database; stop it and try again"
        case .io(let message):
            "the database cannot be read or written (\(message)); check the disk and the state directory's permissions"
        case .unknownStagedBatch(let stagedBatch):
            "there is no open queue \(stagedBatch); begin a new one with queue.begin"
        case .noRoom(let message), .quota(let message), .cycle(let message), .displaced(let message),
            .missing(let message):
            message
        case .tooCostly:
            "the request examines more tasks or events than one may; narrow it by a batch, states or times (--batch, "
                + "--state, --since, --until), or take smaller parts"
        case .closed:
            "the store is closed because the daemon ends; try again when it runs"
        case .other(let message):
            "the database refused the operation (\(message)); please report this"
        }
    }
}

extension StoreError {
    /// Converts an error of any type.
    ///
    /// - Parameter path: the path of the database file, for errors that name it.
    init(_ error: any Error, path: String = "dld.db") {
        switch error {
        case let error as StoreError: self = error
        case let error as DatabaseError: self.init(error, path: path)
        default: self = .other(String(describing: error))
        }
    }

    private init(_ error: DatabaseError, path: String) {
        let message = error.message ?? error.resultCode.description
        // The shared-memory file can fail to grow only for lack of space, although SQLite reports this as an I/O error.
        if error.extendedResultCode == .SQLITE_IOERR_SHMSIZE {
            self = .full
            return
        }
        switch error.resultCode {
        case .SQLITE_FULL: self = .full
        case .SQLITE_CORRUPT: self = .corrupt(message)
        case .SQLITE_NOTADB: self = .notADatabase(path: path)
        case .SQLITE_BUSY, .SQLITE_LOCKED: self = .busy
        case .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM: self = .io(message)
        case .SQLITE_MISUSE: self = .closed
        default: self = .other(message)
        }
    }
}

/// Performs `body` and converts its errors to ``StoreError``.
func translated<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
    do {
        return try body()
    } catch {
        throw StoreError(error)
    }
}
