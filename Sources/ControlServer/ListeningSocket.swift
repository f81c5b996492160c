import CLinux
import Glibc

/// A socket to make in the file system.
package struct SocketPath: Sendable {
    /// Absolute, at most ``maximumLength`` bytes.
    package var path: String
    /// The permission bits that it ends up with.
    package var mode: UInt32
    /// The group that it ends up with; `nil`: that of the process.
    package var group: UInt32?
    /// A socket that nobody answers on is replaced. Only for a caller that holds the state directory's lock.
    package var replacesStale: Bool

    /// `sun_path` of unix(7), less its final zero byte.
    package static let maximumLength = 107

    package init(path: String, mode: UInt32 = 0o600, group: UInt32? = nil, replacesStale: Bool) {
        self.path = path
        self.mode = mode
        self.group = group
        self.replacesStale = replacesStale
    }
}

/// Why there is no listening socket.
package enum ListeningSocketError: Error, Equatable, CustomStringConvertible {
    case invalidPath(String)
    case pathTooLong(String)
    /// Something that is not a socket stands there.
    case notASocket(String)
    /// Somebody answers there, or might.
    case inUse(String)
    /// What was passed in is not a listening Unix stream socket.
    case notListening(descriptor: Int32)
    case system(call: String, path: String, errno: Int32)

    package var description: String {
        switch self {
        case .invalidPath(let path):
            "the socket's path must be absolute and without zero bytes: \(path.debugDescription)"
        case .pathTooLong(let path):
            "the socket's path is \(path.utf8.count) bytes long; the system takes \(SocketPath.maximumLength): \(path)"
        case .notASocket(let path): "\(path) exists and is not a socket; remove it or choose another path"
        case .inUse(let path):
            "the socket \(path) is in use: another daemon may answer there; stop it, or choose another --socket"
        case .notListening(let descriptor): "descriptor \(descriptor) is not a listening Unix stream socket"
        case .system(let call, let path, let errno): "\(call) \(path): \(String(cString: strerror(errno)))"
        }
    }
}

/// A socket that clients can connect to as soon as ``listen()`` is called.
struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// What to unlink in the end; `nil` for a socket that was made by somebody else.
    private let made: Made?

    private struct Made: Sendable {
        let path: String
        let device: dev_t
        let inode: ino_t
    }

    /// Takes over a socket that listens already, as systemd passes it.
    init(adopting descriptor: Int32) throws(ListeningSocketError) {
        guard Self.option(SO_DOMAIN, descriptor) == AF_UNIX,
            Self.option(SO_TYPE, descriptor) == Int32(SOCK_STREAM.rawValue),
            Self.option(SO_ACCEPTCONN, descriptor) == 1
        else { throw .notListening(descriptor: descriptor) }
        self.descriptor = descriptor
        made = nil
    }

    /// Makes a socket that is never, not even for a moment, more open than `socket.mode`.
    init(making socket: SocketPath) throws(ListeningSocketError) {
        let path = socket.path
        _ = try Self.address(path)
        try Self.makeParent(of: path, group: socket.group)
        try Self.clear(path, replacesStale: socket.replacesStale)
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure("socket", path) }
        do {
            made = try Self.bind(descriptor, socket)
        } catch {
            _ = Glibc.close(descriptor)  // nobody has connected
            throw error
        }
        self.descriptor = descriptor
    }

    /// Clients that wait until they are accepted: a burst of them must not be turned away.
    private static let backlog: Int32 = 1_024

    /// Lets clients connect.
    func listen() throws(ListeningSocketError) {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
            Glibc.listen(descriptor, Self.backlog) == 0
        else { throw Self.failure("listen", made?.path ?? "descriptor \(descriptor)") }
    }

    /// Turns everyone away who has not been accepted, unless the socket is somebody else's too.
    func close() {
        if made != nil {
            _ = shutdown(descriptor, Int32(SHUT_RDWR))  // fails where nobody could connect yet
        }
        // Whoever closes it last closes what they sent along, too: see ``ClientSocket``.
        ReceivingProcess.close(descriptor, user: geteuid())
    }

    /// Removes the socket's name, if it is still the one that was made here.
    func unlinkIfMade() {
        guard let made, let found = Self.status(made.path), found.st_dev == made.device, found.st_ino == made.inode
        else { return }
        _ = unlink(made.path)  // the next start clears what stays
    }

    // MARK: - Making

    /// Binds without listening: until the permissions are right, every connect is refused.
    private static func bind(
        _ descriptor: Int32, _ socket: SocketPath
    ) throws(ListeningSocketError) -> Made {
        let path = socket.path
        try bindPrivately(descriptor, path, mode: socket.mode)
        guard let status = status(path) else { throw failure("lstat", path) }
        let made = Made(path: path, device: status.st_dev, inode: status.st_ino)
        if let group = socket.group, lchown(path, uid_t.max, group) != 0 {
            let error = failure("chown", path)
            _ = unlink(path)  // the next start clears what stays
            throw error
        }
        guard chmod(path, socket.mode) == 0 else {
            let error = failure("chmod", path)
            _ = unlink(path)  // the next start clears what stays
            throw error
        }
        return made
    }

    /// Linux gives the new name the mode of the socket's own inode, less the umask. The umask itself belongs to all
    /// threads, and a file that another one makes at this moment must not suffer from it.
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
        guard bytes.count <= SocketPath.maximumLength else { throw .pathTooLong(path) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return address
    }

    /// The parent alone: that its own parent is missing points to a slip of the hand.
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
        // The lock guards the state directory and not this path: a daemon with another one may live here.
        guard replacesStale, isDeaf(path) else { throw .inUse(path) }
        guard unlink(path) == 0 || errno == ENOENT else { throw failure("unlink", path) }
    }

    /// Whether connecting is refused, so that nobody can be listening.
    private static func isDeaf(_ path: String) -> Bool {
        guard let address = try? address(path) else { return false }
        let probe = Glibc.socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { return false }
        defer { _ = Glibc.close(probe) }  // a probe sends nothing
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
