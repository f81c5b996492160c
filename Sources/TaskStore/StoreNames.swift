import Glibc

/// The files that the store has open, and whether their names still lead to them.
///
/// What is written into a file without a name is gone when the process ends, however well it was synced.
struct StoreNames: Sendable {
    /// What was found wrong.
    struct Fault: Equatable {
        /// For a person.
        var text: String
        /// The database itself is in its place, and no other file has the log's name.
        var isLogGone = false
    }

    private struct Name {
        let path: String
        let device: UInt64
        let inode: UInt64
    }

    private let database: Name
    private let log: Name

    /// - Parameter path: of the database, which is open and has a log.
    init(path: String) throws(StoreError) {
        database = try Self.name(path)
        log = try Self.name(path + "-wal")
    }

    private static func name(_ path: String) throws(StoreError) -> Name {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .io("\(path): \(String(cString: strerror(errno)))") }
        return Name(path: path, device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    /// Two calls of the system.
    ///
    /// - Returns: `nil` where both names lead to what is open.
    func fault() -> Fault? {
        if let text = Self.fault(of: database) { return Fault(text: text) }
        guard let text = Self.fault(of: log) else { return nil }
        return Fault(text: text, isLogGone: access(log.path, F_OK) != 0 && errno == ENOENT)
    }

    private static func fault(of name: Name) -> String? {
        var status = stat()
        guard lstat(name.path, &status) == 0 else {
            let error = errno
            return error == ENOENT || error == ENOTDIR
                ? "\(name.path) was removed" : "\(name.path) cannot be looked at (\(String(cString: strerror(error))))"
        }
        guard UInt64(status.st_dev) == name.device, UInt64(status.st_ino) == name.inode else {
            return "\(name.path) is another file now than the one that the daemon has open"
        }
        return nil
    }
}
