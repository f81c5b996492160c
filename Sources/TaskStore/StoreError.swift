import GRDB

/// Why the store could not do what was asked; the description says what to do next.
package enum StoreError: Error, Sendable, Equatable {
    /// The file system of the state directory has no room left. Nothing of the call was kept.
    case full
    /// The file system of the state directory has too little room left for more tasks, in bytes. What is there goes on.
    case nearlyFull(free: Int64, reserved: Int64)
    /// The database's content contradicts itself.
    case corrupt(String)
    /// The database was written by a newer program; it was not touched.
    case newer(path: String, schema: String)
    /// The file is not a database of ours; it was not touched.
    case notADatabase(path: String)
    /// Another process holds the database.
    case busy
    /// The system refused to open, read or write the file.
    case io(String)
    /// The set of staged entries does not exist, or belongs to another user.
    case unknownSet(Int64)
    /// There would be more tasks than there may be; the text says whose.
    case quota(String)
    /// A task would wait for itself; the text says by which way.
    case cycle(String)
    /// The names of the database no longer lead to what is open: nothing that would be written would last. The text says
    /// what happened and what to do.
    case displaced(String)
    /// The database is not there, and something else shows that there was one; nothing was touched.
    case missing(String)
    /// The store was closed.
    case closed
    case other(String)
}

extension StoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .full:
            "the file system of the state directory is full; make room there and try again"
        case .nearlyFull(let free, let reserved):
            "the file system of the state directory is almost full: \(free / 1_024) KiB are free, and \(reserved / 1_024) KiB "
                + "are kept for the tasks that are there; make room there and try again"
        case .corrupt(let message):
            "the database is damaged (\(message)); stop the daemon, keep a copy of dld.db and restore a backup"
        case .newer(let path, let schema):
            "\(path) was written by a newer dld (schema \(schema)); install that version or newer, "
                + "or name another state directory"
        case .notADatabase(let path):
            "\(path) is not a database of dld; move it away or name another state directory"
        case .busy:
            "another process holds the database; stop it and try again"
        case .io(let message):
            "the database cannot be read or written (\(message)); check the disk and the state directory's permissions"
        case .unknownSet(let set):
            "there is no queue \(set) to be committed; begin a new one"
        case .quota(let message), .cycle(let message), .displaced(let message), .missing(let message): message
        case .closed:
            "the store is closed because the daemon ends; try again when it runs"
        case .other(let message):
            "the database refused the operation (\(message)); please report this"
        }
    }
}

extension StoreError {
    /// - Parameter path: the database's file, for errors that name it.
    init(_ error: any Error, path: String = "dld.db") {
        switch error {
        case let error as StoreError: self = error
        case let error as DatabaseError: self.init(error, path: path)
        default: self = .other(String(describing: error))
        }
    }

    private init(_ error: DatabaseError, path: String) {
        let message = error.message ?? error.resultCode.description
        // The shared memory file fails to grow for want of room alone, though SQLite calls that an I/O error.
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

/// Gives every error of `body` the store's own type.
func translated<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
    do {
        return try body()
    } catch {
        throw StoreError(error)
    }
}
