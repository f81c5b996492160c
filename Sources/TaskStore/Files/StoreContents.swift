import GRDB
import GRDBSQLite

/// The headers of the database and its log (SQLite's file format, sections 1.3 and 4.1), and their sizes. They tell when
/// another program has truncated or overwritten a file in its place.
///
/// SQLite's own descriptors read the files: closing another one would release SQLite's locks.
struct StoreContents {
    private static let headerOfDatabase = 100
    private static let headerOfLog = 32
    private static let headerOfFrame: Int64 = 24
    /// `SQLITE_IOERR_SHORT_READ`, which Swift does not import.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    private let database: [UInt8]
    private let databaseSize: Int64
    private let log: [UInt8]
    private let logSize: Int64
    /// The number of frames in the log, by its index in memory; `nil` where another process is changing it.
    private let frames: Int64?

    /// Reads the files that the writer connection has open.
    ///
    /// - Returns: `nil` where SQLite does not tell, such as without a log.
    init?(of connection: Database) {
        guard let database = Self.file(SQLITE_FCNTL_FILE_POINTER, of: connection),
            let log = Self.file(SQLITE_FCNTL_JOURNAL_POINTER, of: connection)
        else { return nil }
        let before = Self.frames(in: database)
        guard let databaseSize = Self.size(of: database), let logSize = Self.size(of: log),
            let header = Self.header(of: database, Self.headerOfDatabase),
            let headerOfLog = Self.header(of: log, Self.headerOfLog)
        else { return nil }
        (self.database, self.databaseSize, self.log, self.logSize) = (header, databaseSize, headerOfLog, logSize)
        frames = Self.frames(in: database) == before ? before : nil
    }

    private typealias File = UnsafeMutablePointer<sqlite3_file>

    private static func file(_ code: CInt, of connection: Database) -> File? {
        var file: File?
        guard sqlite3_file_control(connection.sqliteConnection, "main", code, &file) == SQLITE_OK else { return nil }
        return file
    }

    private static func size(of file: File) -> Int64? {
        var size: sqlite3_int64 = 0
        guard let sizeOf = file.pointee.pMethods?.pointee.xFileSize, sizeOf(file, &size) == SQLITE_OK else {
            return nil
        }
        return size
    }

    private static func header(of file: File, _ length: Int) -> [UInt8]? {
        guard let read = file.pointee.pMethods?.pointee.xRead else { return nil }
        var header = [UInt8](repeating: 0, count: length)
        // Of a shorter file SQLite sets the rest to zero, and says so.
        let result = read(file, &header, CInt(length), 0)
        return result == SQLITE_OK || result == shortRead ? header : nil
    }

    /// Returns the field `mxFrame` of the index of the log (SQLite's WAL format, section 2.1), which is mapped already.
    private static func frames(in file: File) -> Int64? {
        var region: UnsafeMutableRawPointer?
        guard let methods = file.pointee.pMethods, methods.pointee.iVersion >= 2, let map = methods.pointee.xShmMap,
            map(file, 0, 32 * 1024, 0, &region) == SQLITE_OK, let region
        else { return nil }
        return Int64(region.load(fromByteOffset: 16, as: UInt32.self))
    }

    /// Returns what is wrong with the files, as a predicate for a message; `nil` if nothing is.
    ///
    /// - Parameter known: the contents after an earlier change by this process.
    func fault(since known: StoreContents) -> String? {
        // The file change counter only grows.
        let changes = Int32(bitPattern: number(at: 24) &- known.number(at: 24))
        if databaseSize < known.databaseSize {
            // A `VACUUM` in a shell shortens the database too, and the header then has the new number of pages.
            guard changes > 0, Int64(number(at: 28)) * pageSize == databaseSize else {
                return "was truncated by another program"
            }
        }
        if database.prefix(18) != known.database.prefix(18) || changes < 0 {
            return "was overwritten by another program"
        }
        if let frames, frames > 0, logSize < Int64(Self.headerOfLog) + frames * (Self.headerOfFrame + pageSize) {
            return "has a log that was truncated"
        }
        // Both byte orders of checksums have a magic number.
        if logSize > 0, Self.number(log, at: 0) & ~1 != 0x377F_0682 { return "has a log that was overwritten" }
        return nil
    }

    /// The size of a page in bytes; 1 stands for 65,536.
    private var pageSize: Int64 {
        let size = Int64(number(at: 16) >> 16)
        return size == 1 ? 65_536 : size
    }

    private func number(at offset: Int) -> UInt32 { Self.number(database, at: offset) }

    private static func number(_ header: [UInt8], at offset: Int) -> UInt32 {
        header.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}
