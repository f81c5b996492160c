import GRDB
import GRDBSQLite

/// The sizes and headers of the database and its log (SQLite's file format, sections 1.3 and 4.1), as SQLite's own
/// descriptors have them. They tell when another program has truncated or overwritten a file in its place.
struct StoreContents: Equatable {
    fileprivate struct File: Equatable {
        var size: Int64
        var header: [UInt8]
    }

    private static let headerOfDatabase = 100
    private static let headerOfLog = 32
    /// `SQLITE_IOERR_SHORT_READ`, which Swift does not import.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    private let database: File
    private let log: File

    /// Reads the files that the writer connection has open.
    ///
    /// - Returns: `nil` where SQLite does not tell, such as without a log.
    init?(of connection: Database) {
        guard let database = Self.file(SQLITE_FCNTL_FILE_POINTER, of: connection, header: Self.headerOfDatabase),
            let log = Self.file(SQLITE_FCNTL_JOURNAL_POINTER, of: connection, header: Self.headerOfLog)
        else { return nil }
        (self.database, self.log) = (database, log)
    }

    private static func file(_ code: CInt, of connection: Database, header length: Int) -> File? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        var size: sqlite3_int64 = 0
        guard sqlite3_file_control(connection.sqliteConnection, "main", code, &file) == SQLITE_OK, let file,
            let methods = file.pointee.pMethods, let sizeOf = methods.pointee.xFileSize,
            let read = methods.pointee.xRead, sizeOf(file, &size) == SQLITE_OK
        else { return nil }
        var header = [UInt8](repeating: 0, count: length)
        // Of a shorter file SQLite sets the rest to zero, and says so.
        let result = read(file, &header, CInt(length), 0)
        return result == SQLITE_OK || result == Self.shortRead ? File(size: size, header: header) : nil
    }

    /// Returns what is wrong with the files, as a predicate for a message; `nil` if nothing is.
    ///
    /// - Parameter known: the contents after the last change by this process.
    func fault(since known: StoreContents) -> String? {
        // The database never shrinks (the daemon sets no `auto_vacuum`), and its counter of changes only grows.
        if database.size < known.database.size { return "was truncated by another program" }
        if database.header.prefix(18) != known.database.header.prefix(18)
            || Int32(bitPattern: database.changes &- known.database.changes) < 0
        {
            return "was overwritten by another program"
        }
        // SQLite itself changes the header when it begins the log again.
        if log.header == known.log.header, log.size < known.log.size { return "has a log that was truncated" }
        if log.size > 0, log.header != known.log.header, !log.isOfLog { return "has a log that was overwritten" }
        return nil
    }
}

extension StoreContents.File {
    /// The file change counter.
    fileprivate var changes: UInt32 { number(at: 24) }

    /// Whether the header begins with the magic number of a log.
    fileprivate var isOfLog: Bool { number(at: 0) & ~1 == 0x377F_0682 }

    private func number(at offset: Int) -> UInt32 {
        header.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}
