import CLinux
import Glibc

/// A socket to be created in the file system.
package struct ListeningSocketPath: Sendable {
    /// The absolute path, of at most ``maximumLength`` bytes.
    package var path: String
    /// The permission bits of the created socket.
    package var mode: UInt32
    /// The group of the created socket; `nil` for the group of the process.
    package var group: UInt32?
    /// Whether a socket that refuses connections is replaced. Only for a caller that holds the state directory's lock.
    package var replacesStale: Bool

    /// The size of `sun_path` of unix(7), less its final zero byte.
    package static let maximumLength = 107

    package init(path: String, mode: UInt32 = 0o600, group: UInt32? = nil, replacesStale: Bool) {
        self.path = path
        self.mode = mode
        self.group = group
        self.replacesStale = replacesStale
    }
}

/// The reason why a listening socket could not be opened.
package enum ListeningSocketError: Error, Equatable, CustomStringConvertible {
    case invalidPath(String)
    case pathTooLong(String)
    /// The path exists and is not a socket.
    case notASocket(String)
    /// A process accepts connections at the path, or might.
    case inUse(String)
    /// The descriptor that was passed in is not a listening Unix stream socket.
    case notListening(descriptor: Int32)
    case system(call: String, path: String, errno: Int32)

    package var description: String {
        switch self {
        case .invalidPath(let path):
            "the socket's path must be absolute and without zero bytes: \(path.debugDescription)"
        case .pathTooLong(let path):
            "the socket's path is \(path.utf8.count) bytes long; the maximum is "
                + "\(ListeningSocketPath.maximumLength): \(path)"
        case .notASocket(let path): "\(path) exists and is not a socket; remove it or choose another path"
        case .inUse(let path):
            "the socket \(path) is in use: another daemon may use it; stop it, or choose another --socket"
        case .notListening(let descriptor): "descriptor \(descriptor) is not a listening Unix stream socket"
        case .system(let call, let path, let errno): "\(call) \(path): \(String(cString: strerror(errno)))"
        }
    }
}

/// A socket that clients can connect to once ``listen()`` is called.
struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// The file to remove in the end; `nil` for a socket that was passed in.
    private let made: Made?

    private struct Made: Sendable {
        let path: String
        let device: dev_t
        let inode: ino_t
    }

    /// Adopts a socket that is already listening, as systemd passes it.
    init(adopting descriptor: Int32) throws(ListeningSocketError) {
        guard Self.option(SO_DOMAIN, descriptor) == AF_UNIX,
            Self.option(SO_TYPE, descriptor) == Int32(SOCK_STREAM.rawValue),
            Self.option(SO_ACCEPTCONN, descriptor) == 1
        else { throw .notListening(descriptor: descriptor) }
        self.descriptor = descriptor
        made = nil
    }

    /// Creates a socket whose permissions never, not even for a moment, exceed `socket.mode`.
    init(making socket: ListeningSocketPath) throws(ListeningSocketError) {
        let path = socket.path
        _ = try Self.address(path)
        try Self.makeParent(of: path, group: socket.group)
        try Self.clear(path, replacesStale: socket.replacesStale)
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure("socket", path) }
        do {
            made = try Self.bind(descriptor, socket)
        } catch {
            _ = Glibc.close(descriptor)  // no client has connected
            throw error
        }
        self.descriptor = descriptor
    }

    /// The number of clients that may wait to be accepted, so that a burst of them is not refused.
    private static let backlog: Int32 = 1_024

    /// Starts accepting connections.
    func listen() throws(ListeningSocketError) {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
            Glibc.listen(descriptor, Self.backlog) == 0
        else { throw Self.failure("listen", made?.path ?? "descriptor \(descriptor)") }
    }

    /// Refuses all clients that have not been accepted, unless the socket was passed in and so is shared with another
    /// process.
    func close() {
        if made != nil {
            _ = shutdown(descriptor, Int32(SHUT_RDWR))  // fails if no client could connect yet
        }
        // The last close of the socket also closes the files that those clients sent: see ``ClientSocket``.
        ReceivingProcess.close(descriptor, user: geteuid())
    }

    /// Removes the socket's path, if it is still the file created here.
    func unlinkIfMade() {
        guard let made, let found = Self.status(made.path), found.st_dev == made.device, found.st_ino == made.inode
        else { return }
        _ = unlink(made.path)  // the next start removes it otherwise
    }

    // MARK: - Creation

    /// Binds without listening: until the permissions are set, every connection is refused.
    private static func bind(
        _ descriptor: Int32, _ socket: ListeningSocketPath
    ) throws(ListeningSocketError) -> Made {
        let path = socket.path
        try bindPrivately(descriptor, path, mode: socket.mode)
        guard let status = status(path) else { throw failure("lstat", path) }
        let made = Made(path: path, device: status.st_dev, inode: status.st_ino)
        if let group = socket.group, lchown(path, uid_t.max, group) != 0 {
            let error = failure("chown", path)
            _ = unlink(path)  // the next start removes it otherwise
            throw error
        }
        guard chmod(path, socket.mode) == 0 else {
            let error = failure("chmod", path)
            _ = unlink(path)  // the next start removes it otherwise
            throw error
        }
        return made
    }

    /// Binds the socket with restricted permissions. Linux gives the new file the mode of the socket's own inode, less
    /// the umask. The umask itself is shared by all threads, and must not affect a file that another thread creates at
    /// this moment.
    static func bindPrivately(
        _ descriptor: Int32, _ path: String, mode: UInt32
    ) throws(ListeningSocketError) {
        let address = try address(path)
        guard fchmod(descriptor, mode & 0o600) == 0 else { throw failure("fchmod", path) }
        let bound = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0 else {
            if errno == EADDRINUSE { throw .inUse(path) }
            throw failure("bind", path)
        }
    }

    private static func address(_ path: String) throws(ListeningSocketError) -> sockaddr_un {
        let bytes = Array(path.utf8)
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0) else { throw .invalidPath(path) }
        guard bytes.count <= ListeningSocketPath.maximumLength else { throw .pathTooLong(path) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return address
    }

    /// Creates the parent directory only. If the parent's own parent is missing too, the path is probably mistyped.
    private static func makeParent(of path: String, group: UInt32?) throws(ListeningSocketError) {
        let end = path.lastIndex(of: "/") ?? path.startIndex
        let parent = end == path.startIndex ? "/" : String(path[..<end])
        guard mkdir(parent, 0o700) == 0 else {
            if errno == EEXIST { return }
            throw failure("mkdir", parent)
        }
        guard let group else { return }
        guard lchown(parent, uid_t.max, group) == 0 else { throw failure("chown", parent) }
        guard chmod(parent, 0o750) == 0 else { throw failure("chmod", parent) }
    }

    private static func clear(_ path: String, replacesStale: Bool) throws(ListeningSocketError) {
        guard let found = status(path) else {
            if errno == ENOENT { return }
            throw failure("lstat", path)
        }
        guard found.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path) }
        // The lock protects the state directory and not this path: a daemon with another state directory may use it.
        guard replacesStale, hasNoListener(path) else { throw .inUse(path) }
        guard unlink(path) == 0 || errno == ENOENT else { throw failure("unlink", path) }
    }

    /// Whether a connection is refused, so that no process can be listening.
    private static func hasNoListener(_ path: String) -> Bool {
        guard let address = try? address(path) else { return false }
        let probe = Glibc.socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { return false }
        defer { _ = Glibc.close(probe) }  // the probe sends nothing
        let connected = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(probe, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return connected != 0 && errno == ECONNREFUSED
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return lstat(path, &status) == 0 ? status : nil
    }

    private static func option(_ name: Int32, _ descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }

    private static func failure(_ call: String, _ path: String) -> ListeningSocketError {
        .system(call: call, path: path, errno: errno)
    }
}
