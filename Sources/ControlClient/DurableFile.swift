import Glibc

/// A small file of the user's state that is replaced as a whole and survives power failures.
public struct DurableFile: Sendable {
    /// The path of the file.
    public let path: String

    /// An error, with the path that it concerns.
    public struct Failure: Error, Sendable, Equatable {
        /// The path of the file or directory.
        public var path: String
        /// The error number (errno(3)).
        public var errno: Int32
    }

    /// Creates a value for the file at a path, which need not exist.
    public init(path: String) { self.path = path }

    /// Returns the directory for the state of the user's programs (XDG Base Directory Specification); `nil` if the
    /// environment names none.
    public static func directory(environment: [String: String]) -> String? {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return state }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return home + "/.local/state"
    }

    /// Returns the contents; `nil` if there is no file.
    public func load() throws(Failure) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Failure(path: path, errno: errno)
        }
        defer { _ = close(descriptor) }  // nothing was written
        var contents: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &part, part.count)
            if count > 0 { contents += part.prefix(count) }
            if count == 0 { return contents }
            if count < 0, errno != EINTR { throw Failure(path: path, errno: errno) }
        }
    }

    /// Replaces the contents, and creates the file (mode 0600) and its directory (0700) where they are missing.
    public func store(_ contents: some Sequence<UInt8>) throws(Failure) {
        try makeDirectory()
        let new = path + ".new"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(path: new, errno: errno) }
        defer { _ = close(descriptor) }  // fsync has reported every error
        var rest = Array(contents)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw Failure(path: new, errno: errno)
            }
        }
        guard fsync(descriptor) == 0, rename(new, path) == 0 else { throw Failure(path: path, errno: errno) }
        try syncDirectory()
    }

    private var directory: String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    /// Creates the directory of the file (mode 0700) where it is missing.
    func makeDirectory() throws(Failure) {
        var made = ""
        for part in directory.split(separator: "/") {
            made += "/" + part
            guard mkdir(made, 0o700) == 0 || errno == EEXIST || access(made, F_OK) == 0 else {
                throw Failure(path: made, errno: errno)
            }
        }
    }

    private func syncDirectory() throws(Failure) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(path: directory, errno: errno) }
        defer { _ = close(descriptor) }  // nothing was written
        guard fsync(descriptor) == 0 else { throw Failure(path: directory, errno: errno) }
    }
}
