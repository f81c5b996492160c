import GRDB
import Glibc

/// Copies of a database that lost its name while a daemon had it open: `dld.db.rescued-TIME` in the state directory.
///
/// The next start goes on with such a copy where that can forget nothing. What is in the way is moved aside, never
/// replaced or removed.
struct RescuedStore {
    private static let name = "dld.db"
    private static let prefix = "dld.db.rescued-"
    private static let draftPrefix = "dld.db.rescuing-"
    private static let asidePrefix = "dld.db.displaced-"
    /// What SQLite keeps beside a database.
    private static let companions = ["-wal", "-shm", "-journal"]
    /// Bytes of a log that holds nothing: SQLite's file format, section 4.1.
    private static let emptyLog: Int64 = 32

    // MARK: Making one

    /// - Parameter database: outside of any transaction.
    /// - Returns: the path of the copy, which is on the disk.
    static func make(of database: Database, in directory: String) throws(StoreError) -> String {
        _ = mkdir(directory, 0o700)  // where it is there already, and where it cannot be made, the next call tells
        let draft = "\(directory)/\(draftPrefix)\(getpid())"
        _ = unlink(draft)  // where it cannot be removed, the next call fails
        let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw error(draft) }
        defer {
            _ = close(descriptor)  // synced below
            _ = unlink(draft)  // its bytes have another name by then, or count for nothing
        }
        try translated { try database.execute(sql: "VACUUM INTO ?", arguments: [draft]) }
        guard fsync(descriptor) == 0 else { throw error(draft) }
        let stamp = stamp()
        // A link never replaces anything.
        for number in 1...1_000 {
            let path = "\(directory)/\(prefix)\(stamp)" + (number == 1 ? "" : "-\(number)")
            if link(draft, path) == 0 {
                try synchronize(directory)
                return path
            }
            guard errno == EEXIST else { throw error(path) }
        }
        throw .io("\(directory) is full of copies")
    }

    // MARK: Taking one up

    /// Before the database is opened: makes sure that opening it forgets nothing that was acknowledged.
    ///
    /// - Returns: what a person should know.
    /// - Throws: ``StoreError/missing(_:)`` where a person has to decide which database counts.
    static func takeUp(in directory: String) throws(StoreError) -> [String] {
        var copies: [String] = []
        for entry in entries(of: directory) {
            // A daemon that died while it made a copy.
            if entry.hasPrefix(draftPrefix) { _ = unlink("\(directory)/\(entry)") }  // it is in nobody's way
            if entry.hasPrefix(prefix), !companions.contains(where: entry.hasSuffix) { copies.append(entry) }
        }
        copies.sort()
        let path = "\(directory)/\(name)"
        guard size(of: path) != nil else {
            guard errno == ENOENT else { return [] }
            guard let copy = copies.first else {
                if let size = size(of: path + "-wal"), size > emptyLog {
                    throw .missing(
                        "\(path) is gone, and its log \(path)-wal is still there: put the database back beside it, or "
                            + "move the log away to begin with nothing")
                }
                return []
            }
            guard copies.count == 1 else {
                throw .missing(
                    "\(path) is gone, and there are several copies of what daemons held (\(copies.joined(separator: ", "))): "
                        + "give the one that is to count the name \(name)")
            }
            return [try adopt(copy, in: directory)]
        }
        if copies.isEmpty { return [] }
        // No daemon has opened what is there since the one that made the copy: the copy has all of that, and more.
        if let current = opening(of: path) {
            let same = copies.filter { opening(of: "\(directory)/\($0)") == current }
            if same.count == 1 { return [try adopt(same[0], in: directory)] }
        }
        return [
            "\(directory) holds copies of databases that were lost under a running daemon and that do not belong to the one "
                + "that is there (\(copies.joined(separator: ", "))): to go on with one, stop the daemon and give it the name "
                + "\(name); otherwise move them away"
        ]
    }

    /// What the copy is in the place of is moved aside, its log first: a log beside another database destroys that.
    private static func adopt(_ copy: String, in directory: String) throws(StoreError) -> String {
        let from = "\(directory)/\(copy)"
        try check(from)
        let path = "\(directory)/\(name)"
        var aside = "\(directory)/\(asidePrefix)\(stamp())"
        while size(of: aside) != nil || companions.contains(where: { size(of: aside + $0) != nil }) { aside += "+" }
        var isAside = false
        for suffix in companions + [""] where size(of: path + suffix) != nil {
            guard rename(path + suffix, aside + suffix) == 0 else { throw error(path + suffix) }
            isAside = true
        }
        try synchronize(directory)
        guard rename(from, path) == 0 else { throw error(from) }
        try synchronize(directory)
        return "the database was lost while a daemon ran; this one goes on with the copy that was made of it (\(copy))"
            + (isAside ? "; what was in its place is now \(aside)" : "")
    }

    /// Makes sure that the copy is whole.
    private static func check(_ path: String) throws(StoreError) {
        do {
            let found = try reading(path) { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
            guard found == "ok" else { throw StoreError.corrupt("the copy \(path): \(found ?? "unreadable")") }
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// What tells one opening of a database from all others; `nil` where it cannot be read.
    private static func opening(of path: String) -> [String]? {
        let sql = "SELECT value FROM meta WHERE name IN ('identity', 'opening') ORDER BY name"
        let values = try? reading(path) { try String.fetchAll($0, sql: sql) }
        return values?.count == 2 ? values : nil
    }

    private static func reading<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(TaskStore.busyTimeout)
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.read(body)
    }

    // MARK: Files

    /// - Returns: `nil` where there is nothing of this name; `errno` says why.
    private static func size(of path: String) -> Int64? {
        var status = stat()
        return lstat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    private static func entries(of directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { _ = closedir(stream) }  // it was read at most
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            names.append(name)
        }
        return names
    }

    private static func synchronize(_ directory: String) throws(StoreError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw error(directory) }
        defer { _ = close(descriptor) }  // a directory that was read at most
        guard fsync(descriptor) == 0 else { throw error(directory) }
    }

    /// Now, in UTC: `20260131T235959Z`.
    private static func stamp() -> String {
        var now = time(nil)
        var parts = tm()
        var text = [CChar](repeating: 0, count: 32)
        guard gmtime_r(&now, &parts) != nil else { return "\(now)" }
        let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func error(_ path: String) -> StoreError {
        let error = errno
        return error == ENOSPC || error == EDQUOT ? .full : .io("\(path): \(String(cString: strerror(error)))")
    }
}
