import Glibc
import TaskModel

/// A copy of standard input in a temporary file that has no name any more. It takes room on the disk until it is closed.
struct SpooledInput {
    /// The path that the file had.
    let path: String
    /// The open file, which the caller closes.
    let descriptor: Int32

    /// Copies a descriptor to its end.
    ///
    /// - Parameter directory: the directory of the file.
    init(copying source: Int32 = STDIN_FILENO, in directory: String = SpooledInput.directory) throws(Failure) {
        var name = Array("\(directory)/dlctl-stdin-XXXXXX".utf8CString)
        let made = mkstemp(&name)
        guard made >= 0 else { throw Self.failure("cannot make a file in \(directory)", errno) }
        _ = unlink(name)  // a file that keeps its name is only in the way
        // The daemon takes files that are open for reading alone.
        descriptor = open("/proc/self/fd/\(made)", O_RDONLY | O_CLOEXEC)
        let code = errno
        defer { _ = close(made) }  // a failed write was reported by write
        path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard descriptor >= 0 else { throw Self.failure("cannot open its copy in \(directory)", code) }
        var chunk = [UInt8](repeating: 0, count: 256 * 1024)
        while true {
            let count = read(source, &chunk, chunk.count)
            if count == 0 { break }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Self.failure("cannot be read", errno)
            }
            var rest = chunk[..<count]
            while !rest.isEmpty {
                let written = rest.withUnsafeBytes { write(made, $0.baseAddress, $0.count) }
                if written > 0 {
                    rest = rest.dropFirst(written)
                } else if errno != EINTR {
                    throw Self.failure("does not fit into \(directory)", errno)
                }
            }
        }
    }

    private static func failure(_ problem: String, _ code: Int32) -> Failure {
        let isFull = code == ENOSPC || code == EDQUOT || code == EFBIG
        return Failure(
            .failed, code: isFull ? .diskFull : .io, field: "file",
            "standard input: \(problem): \(SystemText.error(code))"
                + (isFull ? "; name a directory with more room in TMPDIR" : ""))
    }

    /// The directory for temporary files that may be large.
    static var directory: String {
        Environment.variables["TMPDIR"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/var/tmp"
    }
}
