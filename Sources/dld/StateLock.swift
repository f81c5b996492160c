import Glibc

/// A lock of a state directory for one daemon. The kernel releases it when the process ends, however it ends.
final class StateLock: Sendable {
    private let file: Int32
    /// The directory itself, locked as well, so that the lock holds even if the file is removed.
    private let directory: Int32

    enum Failure: Error, CustomStringConvertible {
        /// The lock is held by another daemon, whose process id is given if known.
        case held(directory: String, pid: Int32?)
        case system(String, Int32)

        var description: String {
            switch self {
            case .held(let directory, let pid):
                "another dld\(pid.map { " (process \($0))" } ?? "") uses \(directory): it runs already, so use dlctl; "
                    + "to start another, stop it first (dlctl shutdown) or choose another --state-directory"
            case .system(let what, let error):
                "\(what) (\(String(cString: strerror(error)))); the daemon's user must be able to write to "
                    + "the state directory"
            }
        }
    }

    /// Creates the directory (0700) if it is missing, and locks it.
    init(directory: String) throws(Failure) {
        var built = ""
        for component in directory.split(separator: "/") {
            built += "/" + component
            _ = mkdir(built, built == directory ? 0o700 : 0o755)  // if one is missing, the open below fails
        }
        let path = directory + "/lock"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .system("cannot open \(path)", errno) }
        let opened = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let openError = errno
        let failure: Failure? =
            if flock(file, LOCK_EX | LOCK_NB) != 0 {
                errno == EWOULDBLOCK
                    ? .held(directory: directory, pid: Self.number(in: file)) : .system("cannot lock \(path)", errno)
            } else if opened < 0 {
                .system("cannot open \(directory)", openError)
            } else if flock(opened, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
                .held(directory: directory, pid: nil)
            } else {
                // If the file system cannot lock directories, as NFS, the file's lock alone must suffice.
                nil
            }
        if let failure {
            if opened >= 0 { _ = close(opened) }  // nothing was written to it
            _ = close(file)  // as above
            throw failure
        }
        self.file = file
        self.directory = opened
        let pid = "\(getpid())\n"
        // The process id is only for display; the lock is what counts.
        _ = ftruncate(file, 0)
        _ = pwrite(file, pid, pid.utf8.count, 0)  // as above
    }

    deinit {
        _ = close(directory)  // releases the lock whatever it returns
        _ = close(file)  // as above
    }

    private static func number(in file: Int32) -> Int32? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(file, &text, text.count, 0)
        let digits = text[..<max(0, count)].prefix { (0x30...0x39).contains($0) }
        return Int32(String(decoding: digits, as: UTF8.self))
    }
}
