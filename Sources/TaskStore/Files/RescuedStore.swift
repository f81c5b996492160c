import GRDB
import Glibc

/// Copies of a database whose file was deleted, renamed or overwritten while a daemon had it open: `dld.db.rescued-TIME` in the
/// state directory.
///
/// The next start continues with such a copy if that loses no data. Files in the way are renamed, never replaced or
/// removed.
struct RescuedStore {
    private static let name = "dld.db"
    private static let prefix = "dld.db.rescued-"
    private static let draftPrefix = "dld.db.rescuing-"
    private static let asidePrefix = "dld.db.displaced-"
    /// The size in bytes of a log without content, which is its header (SQLite's file format, section 4.1).
    private static let emptyLog: Int64 = 32

    // MARK: Making one

    /// Creates a copy of the database.
    ///
    /// - Parameter database: a connection without an open transaction.
    /// - Returns: the path of the copy, which has been synced to the disk.
    static func make(of database: Database, in directory: String) throws(StoreError) -> String {
        _ = mkdir(directory, 0o700)  // it may exist; if it cannot be created, open(2) below fails
        let draft = "\(directory)/\(draftPrefix)\(getpid())"
        _ = unlink(draft)  // if the file cannot be removed, the next call fails
        let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw DatabaseFiles.failure(draft) }
        defer {
            _ = close(descriptor)  // synced below
            _ = unlink(draft)  // by then the copy has another name, or was not completed
        }
        try translated { try database.execute(sql: "VACUUM INTO ?", arguments: [draft]) }
        guard fsync(descriptor) == 0 else { throw DatabaseFiles.failure(draft) }
        let stamp = stamp()
        // link(2) never replaces an existing file.
        for number in 1...1_000 {
            let path = "\(directory)/\(prefix)\(stamp)" + (number == 1 ? "" : "-\(number)")
            if link(draft, path) == 0 {
                try DatabaseFiles.synchronize(directory)
                return path
            }
            guard errno == EEXIST else { throw DatabaseFiles.failure(path) }
        }
        throw .io("\(directory) contains 1,000 rescued copies with this time; move them away")
    }

    // MARK: Taking one up

    /// Ensures that opening the database will not lose acknowledged data; called before the database is opened.
    ///
    /// - Returns: messages for the administrator.
    /// - Throws: ``StoreError/missing(_:)`` if the administrator has to decide which database to use.
    static func recover(in directory: String) throws(StoreError) -> [String] {
        var copies: [String] = []
        for entry in DatabaseFiles.names(in: directory) {
            // The file was left by a daemon that ended while it made a copy.
            if entry.hasPrefix(draftPrefix) { _ = unlink("\(directory)/\(entry)") }  // an unused draft does no harm
            if entry.hasPrefix(prefix), !DatabaseFiles.companions.contains(where: entry.hasSuffix) {
                copies.append(entry)
            }
        }
        copies.sort()
        let path = "\(directory)/\(name)"
        guard size(of: path) != nil else {
            guard errno == ENOENT else { return [] }
            guard let copy = copies.first else {
                if let size = size(of: path + "-wal"), size > emptyLog {
                    throw .missing(
                        "\(path) is missing, but its log \(path)-wal exists: restore the database, or move the log "
                            + "away to begin with an empty database")
                }
                return []
            }
            guard copies.count == 1 else {
                throw .missing(
                    "\(path) is missing, and there are several rescued copies of it "
                        + "(\(copies.joined(separator: ", "))): rename the one to use to \(name)")
            }
            return [try adopt(copy, in: directory)]
        }
        if copies.isEmpty { return [] }
        // The same opening means that no daemon has opened this database since the one that made the copy. The copy
        // therefore contains all of its data and possibly more.
        if let current = opening(of: path) {
            let same = copies.filter { opening(of: "\(directory)/\($0)") == current }
            if same.count == 1 { return [try adopt(same[0], in: directory)] }
        } else if copies.count == 1, isRuined(path) {
            return [try adopt(copies[0], in: directory)]
        }
        return [
            "\(directory) contains rescued copies of lost databases, which do not belong to the present database "
                + "(\(copies.joined(separator: ", "))): to use one, stop the daemon and "
                + "rename the copy to \(name); otherwise move them away"
        ]
    }

    /// Renames a copy to the database's name. An existing database is renamed first, its log before it: a log next to
    /// another database would corrupt that database.
    private static func adopt(_ copy: String, in directory: String) throws(StoreError) -> String {
        let from = "\(directory)/\(copy)"
        try check(from)
        let path = "\(directory)/\(name)"
        var aside = "\(directory)/\(asidePrefix)\(stamp())"
        while size(of: aside) != nil || DatabaseFiles.companions.contains(where: { size(of: aside + $0) != nil }) {
            aside += "+"
        }
        var isAside = false
        for suffix in DatabaseFiles.companions + [""] where size(of: path + suffix) != nil {
            guard rename(path + suffix, aside + suffix) == 0 else { throw DatabaseFiles.failure(path + suffix) }
            isAside = true
        }
        try DatabaseFiles.synchronize(directory)
        guard rename(from, path) == 0 else { throw DatabaseFiles.failure(from) }
        try DatabaseFiles.synchronize(directory)
        return "the database was lost while a daemon was running; this daemon uses the rescued copy (\(copy))"
            + (isAside ? "; the file in its place is now \(aside)" : "")
    }

    /// Checks the schema and the integrity of a copy.
    private static func check(_ path: String) throws(StoreError) {
        do {
            let found = try DatabaseFiles.read(path) { database in
                try Schema.check(database, path: path)
                return try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
            }
            guard found == "ok" else { throw StoreError.corrupt("the copy \(path): \(found ?? "unreadable")") }
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// Whether a file is no database any more: it is empty, or SQLite finds it damaged.
    private static func isRuined(_ path: String) -> Bool {
        if size(of: path) == 0 { return true }
        do {
            _ = try DatabaseFiles.read(path) { try String.fetchOne($0, sql: "PRAGMA schema_version") }
            return false
        } catch {
            return [.SQLITE_NOTADB, .SQLITE_CORRUPT].contains((error as? DatabaseError)?.resultCode)
        }
    }

    /// Returns the values that identify one opening of a database; `nil` if they cannot be read.
    private static func opening(of path: String) -> [String]? {
        let sql = "SELECT value FROM meta WHERE name IN ('identity', 'opening') ORDER BY name"
        let values = try? DatabaseFiles.read(path) { try String.fetchAll($0, sql: sql) }
        return values?.count == 2 ? values : nil
    }

    // MARK: Files

    /// Returns the size of a file; `nil` if it cannot be examined, with the reason in `errno`.
    private static func size(of path: String) -> Int64? {
        var status = stat()
        return lstat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    /// Returns the current time in UTC, such as `20260131T235959Z`.
    private static func stamp() -> String {
        var now = time(nil)
        var parts = tm()
        var text = [CChar](repeating: 0, count: 32)
        guard gmtime_r(&now, &parts) != nil else { return "\(now)" }
        let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
