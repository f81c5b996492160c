import Glibc

/// The identities of the store's open files, used to check that their paths still refer to them.
///
/// Data written to an unlinked file is lost when the process ends, even if it was synced.
struct StoreNames: Sendable {
    /// A path that no longer refers to the open file.
    struct Fault: Equatable {
        /// A description for the administrator.
        var text: String
        /// Whether only the log is missing: the database is in its place, and no other file has the log's path.
        var isLogGone = false
    }

    /// The sizes and times of both files. They change with each change of their contents, save for one within the same
    /// tick of the kernel's clock (some milliseconds).
    struct Stamps: Equatable {
        fileprivate(set) var database = Stamp()
        fileprivate(set) var log = Stamp()
    }

    struct Stamp: Equatable {
        /// The size in bytes.
        fileprivate(set) var size: Int64 = 0
        fileprivate var seconds = 0
        fileprivate var nanoseconds = 0
    }

    private struct Name {
        let path: String
        let device: UInt64
        let inode: UInt64
    }

    private let database: Name
    private let log: Name

    /// The path of the database.
    var path: String { database.path }

    /// Records the identities of the open files.
    ///
    /// - Parameter path: the path of the database, which must be open and have a log.
    init(path: String) throws(StoreError) {
        database = try Self.name(path)
        log = try Self.name(path + "-wal")
    }

    private static func name(_ path: String) throws(StoreError) -> Name {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .io("\(path): \(String(cString: strerror(errno)))") }
        return Name(path: path, device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }

    /// Checks both paths, with two system calls if nothing is wrong.
    ///
    /// - Parameter stamps: receives the sizes and times of the files if nothing is wrong.
    /// - Returns: `nil` if both paths refer to the open files.
    func fault(_ stamps: inout Stamps) -> Fault? {
        var found = Stamps()
        if let text = Self.fault(of: database, &found.database) { return Fault(text: text) }
        if let text = Self.fault(of: log, &found.log) {
            return Fault(text: text, isLogGone: access(log.path, F_OK) != 0 && errno == ENOENT)
        }
        stamps = found
        return nil
    }

    private static func fault(of name: Name, _ stamp: inout Stamp) -> String? {
        var status = stat()
        guard lstat(name.path, &status) == 0 else {
            let error = errno
            return error == ENOENT || error == ENOTDIR
                ? "\(name.path) was removed" : "\(name.path) cannot be examined (\(String(cString: strerror(error))))"
        }
        guard UInt64(status.st_dev) == name.device, UInt64(status.st_ino) == name.inode else {
            return "\(name.path) is no longer the file that the daemon has open"
        }
        stamp = Stamp(
            size: Int64(status.st_size), seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
        return nil
    }
}
