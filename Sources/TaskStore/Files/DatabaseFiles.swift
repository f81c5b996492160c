import GRDB
import Glibc

/// Operations on the files of databases, and on the state directory that contains them.
enum DatabaseFiles {
    /// The suffixes of the files that SQLite keeps next to a database.
    static let companions = ["-wal", "-shm", "-journal"]

    /// Removes a database, if it exists, and the files next to it. What cannot be removed stays.
    static func remove(_ path: String) {
        for suffix in [""] + companions { _ = unlink(path + suffix) }  // most do not exist
    }

    /// Reads a database without changing it.
    static func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(StoreFile.busyTimeout)
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        defer { try? queue.close() }
        return try queue.read(body)
    }

    /// Returns the names in a directory; none if it cannot be read.
    static func names(in directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { _ = closedir(stream) }  // the directory was only read
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            names.append(name)
        }
        return names
    }

    /// Writes the entries of a directory to the disk.
    static func synchronize(_ directory: String) throws(StoreError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(directory) }
        defer { _ = close(descriptor) }  // the directory was only read
        guard fsync(descriptor) == 0 else { throw failure(directory) }
    }

    /// Returns the error for a system call on a path that has just failed, from `errno`.
    static func failure(_ path: String) -> StoreError {
        let error = errno
        return error == ENOSPC || error == EDQUOT ? .full : .io("\(path): \(String(cString: strerror(error)))")
    }
}
