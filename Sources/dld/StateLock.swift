import Glibc

/// Holds a state directory for one daemon; let go of by the kernel when the process ends, however it ends.
final class StateLock: Sendable {
    private let descriptor: Int32

    enum Failure: Error, CustomStringConvertible {
        /// Another daemon is there; its number where it is known.
        case held(directory: String, pid: Int32?)
        case system(String, Int32)

        var description: String {
            switch self {
            case .held(let directory, let pid):
                "another dld\(pid.map { " (process \($0))" } ?? "") runs on \(directory); stop it first, "
                    + "or choose another --state-directory"
            case .system(let what, let error):
                "\(what) (\(String(cString: strerror(error)))); the state directory must be one that this daemon's user "
                    + "may write to"
            }
        }
    }

    /// Makes the directory (0700) where it is missing, and locks it.
    init(directory: String) throws(Failure) {
        var built = ""
        for component in directory.split(separator: "/") {
            built += "/" + component
            _ = mkdir(built, built == directory ? 0o700 : 0o755)  // where one is missing, the open below fails
        }
        let path = directory + "/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system("cannot open \(path)", errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = errno
            var text = [UInt8](repeating: 0, count: 16)
            let count = pread(descriptor, &text, text.count, 0)
            _ = close(descriptor)  // nothing was written to it
            guard error == EWOULDBLOCK else { throw .system("cannot lock \(path)", error) }
            let digits = text[..<max(0, count)].prefix { (0x30...0x39).contains($0) }
            throw .held(directory: directory, pid: Int32(String(decoding: digits, as: UTF8.self)))
        }
        let pid = "\(getpid())\n"
        // The number is for people to read; the lock is what counts.
        _ = ftruncate(descriptor, 0)
        _ = pwrite(descriptor, pid, pid.utf8.count, 0)  // as above
    }

    deinit { _ = close(descriptor) }  // gives up the lock whatever it returns
}
