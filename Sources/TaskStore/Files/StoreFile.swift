import GRDB
import Glibc

/// The file `dld.db`, which is accessible only to its owner and is validated before it is opened for writing.
struct StoreFile {
    /// The time to wait for a lock of another process, such as a backup, in seconds.
    static let busyTimeout = 5.0

    let path: String

    init(directory: String) {
        path = directory + "/dld.db"
    }

    /// Refuses a backup that was put in the place of a database whose log is still there. SQLite would take the log for
    /// the copy's own. A backup's header says that it has no log (SQLite's file format, section 1.3: the write and read
    /// versions are 1), which a database of the daemon says only before it has ever had one.
    func checkLog() throws(StoreError) {
        guard let versions = try Self.beginning(of: path, count: 20)?[18..<20], versions.allSatisfy({ $0 == 1 }) else {
            return
        }
        if hasLog { throw .foreignLog(path: path) }
    }

    private var hasLog: Bool {
        var status = stat()
        return lstat(path + "-wal", &status) == 0 && status.st_size > 0
    }

    /// Creates the file if it does not exist; otherwise validates it without changing it.
    func prepare() throws(StoreError) {
        if try !make() { try validate() }
        // SQLite gives its log and its shared-memory file the permissions of this file.
        guard chmod(path, 0o600) == 0 else { throw .io(Self.reason(path)) }
    }

    /// Creates the file.
    ///
    /// - Returns: whether the file was created; `false` if it exists.
    private func make() throws(StoreError) -> Bool {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST { return false }
            throw errno == ENOSPC ? .full : .io(Self.reason(path))
        }
        _ = close(descriptor)  // nothing was written to it
        return true
    }

    /// Validates an existing file. A read-only connection neither recovers nor checkpoints, so that a rejected file is
    /// not modified.
    private func validate() throws(StoreError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .io(Self.reason(path)) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notADatabase(path: path) }
        if status.st_size == 0 {
            // Only a database that has been written to has a log.
            if hasLog { throw .corrupt("\(path) is empty, and its log is not") }
            return
        }
        if try !hasMagic() {
            guard try isUnfinished() else { throw .notADatabase(path: path) }
        }
        do {
            do {
                try validateContent(readonly: true)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_READONLY {
                // An interrupted transaction must be rolled back before the file can be read. Any program that opens
                // the file, regardless of its owner, would do the same.
                try validateContent(readonly: false)
            }
        } catch {
            throw StoreError(error, path: path)
        }
    }

    private func validateContent(readonly: Bool) throws {
        var configuration = Configuration()
        configuration.readonly = readonly
        configuration.busyMode = .timeout(Self.busyTimeout)
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        try queue.read { database in
            let application = try Int64.fetchOne(database, sql: "PRAGMA application_id")
            guard application == Schema.applicationID else {
                // After a crash before the first migration was committed, the file contains at most GRDB's own empty
                // table.
                let sql = "SELECT count(*) FROM sqlite_schema WHERE tbl_name <> 'grdb_migrations'"
                guard application == 0, try Int64.fetchOne(database, sql: sql) == 0 else {
                    throw StoreError.notADatabase(path: path)
                }
                return
            }
            try Schema.check(database, path: path)
        }
    }

    /// Returns whether the file begins with SQLite's header string. SQLite treats a file shorter than its header as an
    /// empty database and overwrites it.
    private func hasMagic() throws(StoreError) -> Bool {
        try Self.beginning(of: path, count: 16)?.elementsEqual("SQLite format 3\0".utf8) ?? false
    }

    /// Returns whether the very first transaction was interrupted while it was written to the disk, so that any part of
    /// the first page may be missing. In this case the rollback journal states that the database had no pages before
    /// (SQLite's file format, section 3), and SQLite empties the database when opening it.
    private func isUnfinished() throws(StoreError) -> Bool {
        guard let header = try Self.beginning(of: path + "-journal", count: 20) else { return false }
        let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        return header.starts(with: magic) && header[16..<20].allSatisfy { $0 == 0 }
    }

    /// Returns the first bytes of a file; `nil` if the file does not exist or is shorter.
    private static func beginning(of path: String, count: Int) throws(StoreError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .io(reason(path))
        }
        defer { _ = close(descriptor) }  // nothing was written to it
        var bytes = [UInt8](repeating: 0, count: count)
        return read(descriptor, &bytes, count) == count ? bytes : nil
    }

    private static func reason(_ path: String) -> String {
        "\(path): \(String(cString: strerror(errno)))"
    }
}
