import Glibc
import TaskModel

/// Small text files written by a user.
enum SmallFile {
    /// The largest size in bytes.
    static let maximumSize = 256 << 20

    struct Failure: Error, CustomStringConvertible {
        let path: String
        let reason: String
        var description: String { "\(path): \(reason)" }
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Whether `path` certainly does not exist. A dangling symbolic link, and a path that this process may not access,
    /// do not count as missing.
    static func isMissing(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) != 0 && errno == ENOENT
    }

    /// - Parameters:
    ///   - inspect: returns why the open file must not be read; `nil` if it may.
    ///   - waits: whether to wait for a pipe's writer. Use it only at the start, since a running daemon would not respond meanwhile.
    static func read(
        _ path: String, limit: Int = maximumSize, waits: Bool = false, inspect: ((stat) -> String?)? = nil
    ) throws(Failure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK))
        guard descriptor >= 0 else {
            let error = errno
            let advice =
                error == EACCES
                ? "; give the user of this process permission to read it and to search its parent directories" : ""
            throw Failure(path: path, reason: "cannot be opened (\(String(cString: strerror(error))))\(advice)")
        }
        defer { _ = close(descriptor) }  // nothing was written to it
        var status = stat()
        guard waits || (fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT != S_IFIFO) else {
            throw Failure(path: path, reason: "is a pipe, which a running daemon does not read; give a regular file")
        }
        if let inspect {
            guard fstat(descriptor, &status) == 0 else {
                throw Failure(path: path, reason: "cannot be examined (\(String(cString: strerror(errno))))")
            }
            if let reason = inspect(status) { throw Failure(path: path, reason: reason) }
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw Failure(path: path, reason: "cannot be read (\(String(cString: strerror(errno))))")
            }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= limit else {
                throw Failure(path: path, reason: "is longer than \(ByteSize.describe(Int64(limit)))")
            }
        }
    }
}
