import CLinux
import Glibc
import TaskModel

/// A file that gets its name only when it is complete and on the disk.
///
/// Where the file system permits it, the file has no name before, so that nothing is left of it however the program
/// ends. Otherwise it has a temporary name in the same directory.
final class BackupFile {
    /// The absolute path of the complete file.
    let path: String
    /// The number of bytes written.
    private(set) var size: Int64 = 0
    private let directory: String
    private let isReplacing: Bool
    private let descriptor: Int32
    /// The temporary path, if there is one.
    private var draft: String?

    /// Creates the file without its name.
    ///
    /// - Parameters:
    ///   - path: the path as typed.
    ///   - isReplacing: whether an existing regular file is replaced.
    /// - Throws: ``Failure`` if the path cannot become a new file.
    init(_ path: String, replacing isReplacing: Bool) throws(Failure) {
        guard !path.isEmpty, path != "-" else {
            throw .usage("file: give the path of a file; standard output is not supported", field: "file")
        }
        guard let whole = FilePath.absoluteFile(path), let slash = whole.lastIndex(of: "/") else {
            throw Self.failure("find the directory of", path)
        }
        let name = whole[whole.index(after: slash)...]
        guard !name.isEmpty, name != ".", name != ".." else { throw Self.isDirectory(path) }
        self.path = whole
        self.isReplacing = isReplacing
        directory = slash == whole.startIndex ? "/" : String(whole[..<slash])
        try Self.check(path, at: whole, replacing: isReplacing)
        let nameless = open(directory, Self.nameless | O_WRONLY | O_CLOEXEC, 0o600)
        if nameless >= 0 {
            descriptor = nameless
            return
        }
        guard [EOPNOTSUPP, EISDIR, EINVAL, ENOENT].contains(errno) else { throw Self.failure("create", path) }
        let draft = Self.draft(of: name, in: directory)
        descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.failure("create", path) }
        self.draft = draft
    }

    deinit {
        _ = close(descriptor)  // fsync has reported every error
        if let draft { _ = unlink(draft) }  // a leftover is no backup, and its name says so
    }

    /// `O_TMPFILE`, whose definition Glibc's module lacks.
    private static let nameless: Int32 = 0o20_000_000 | O_DIRECTORY

    private static func draft(of name: Substring, in directory: String) -> String {
        "\(directory == "/" ? "" : directory)/.\(name.prefix(100)).incomplete-\(getpid())"
    }

    private static func check(_ typed: String, at path: String, replacing isReplacing: Bool) throws(Failure) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw failure("examine", typed) }
            return
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG where isReplacing: return
        case S_IFREG: throw exists(typed)
        case S_IFDIR: throw isDirectory(typed)
        default:
            throw Failure(
                .failed, code: .nameConflict, field: "file",
                "\(typed) exists and is not a regular file, so it is not replaced; give another path")
        }
    }

    // MARK: Contents

    func append(_ bytes: [UInt8]) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
                size += Int64(count)
            } else if errno != EINTR {
                throw Self.failure("write", path)
            }
        }
    }

    // MARK: The name

    /// Gives the file its name, after which it survives a power failure.
    func publish() throws(Failure) {
        guard fsync(descriptor) == 0 else { throw Self.failure("write", path) }
        if isReplacing { try replace() } else { try name() }
        let parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw Self.failure("sync the directory of", path) }
        defer { _ = close(parent) }  // the directory was only read
        guard fsync(parent) == 0 else { throw Self.failure("sync the directory of", path) }
    }

    /// Names the file; an existing one is never replaced.
    private func name() throws(Failure) {
        if let draft {
            if linux_rename_noreplace(AT_FDCWD, draft, AT_FDCWD, path) == 0 {
                self.draft = nil
                return
            }
            // Where renameat2 cannot keep from replacing, link(2) can.
            if errno == EINVAL || errno == ENOSYS, Glibc.link(draft, path) == 0 { return }
        } else if link(to: path) == 0 {
            return
        }
        throw errno == EEXIST ? Self.exists(path) : Self.failure("create", path)
    }

    private func replace() throws(Failure) {
        try Self.check(path, at: path, replacing: true)
        if draft == nil {
            let draft = Self.draft(of: path[(path.lastIndex(of: "/") ?? path.startIndex)...].dropFirst(), in: directory)
            _ = unlink(draft)  // a file that an earlier process with this id left
            guard link(to: draft) == 0 else { throw Self.failure("create", path) }
            self.draft = draft
        }
        guard let draft, rename(draft, path) == 0 else { throw Self.failure("replace", path) }
        self.draft = nil
    }

    private func link(to path: String) -> Int32 {
        linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, path, Int32(AT_SYMLINK_FOLLOW))
    }

    // MARK: Errors

    private static func exists(_ path: String) -> Failure {
        Failure(
            .failed, code: .nameConflict, field: "file",
            "\(path) exists; give another path, or --force to replace it")
    }

    private static func isDirectory(_ path: String) -> Failure {
        Failure(.failed, code: .nameConflict, field: "file", "\(path) is a directory; give the path of a file in it")
    }

    private static func failure(_ action: String, _ path: String) -> Failure {
        let error = errno
        let code: ErrorCode =
            switch error {
            case ENOSPC, EDQUOT: .diskFull
            case EFBIG: .tooLarge
            case EACCES, EPERM, EROFS: .permissionDenied
            default: .io
            }
        let status: ExitStatus = error == EACCES || error == EPERM ? .notPermitted : .failed
        return Failure(status, code: code, field: "file", "cannot \(action) \(path): \(SystemText.error(error))")
    }
}
