public import FoundationEssentials
import Glibc

/// A file to be sent. It is opened once, so that all data comes from this file, and changes to it are detected.
public final class UploadSource: Sendable {
    /// The values that identify a state of a file.
    public struct Identity: Sendable, Equatable, Codable {
        /// The file system (`st_dev`).
        public var device: UInt64
        /// The file's inode number (`st_ino`).
        public var inode: UInt64
        /// The size in bytes.
        public var size: Int64
        /// The modification time in nanoseconds since 1970.
        public var modified: Int64

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            modified = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
        }
    }

    let descriptor: FileDescriptorOwner
    /// The state of the file when it was opened.
    public let identity: Identity
    /// The uid of the file's owner, for decisions on who may send the file.
    public let owner: UInt32
    /// The file's type and permissions (`st_mode`).
    public let mode: UInt32

    /// Opens a regular file; anything else is refused, and a FIFO does not block the call.
    public convenience init(path: String) throws(TransferError) {
        guard !path.utf8.contains(0) else {
            throw TransferError(.invalidRequest, "a path contains a NUL byte, where the system would cut it")
        }
        let raw = open(path, Self.flags)
        guard raw >= 0 else {
            if errno == ENOENT || errno == ENOTDIR {
                throw TransferError(.sourceChanged, "there is no file \(path) to upload", systemError: errno)
            }
            throw .file(errno, doing: "open \(path)")
        }
        try self.init(FileDescriptorOwner(raw), path: path)
    }

    /// Opens the regular file at a URL of the scheme `file`.
    ///
    /// - Throws: ``TransferError/Code/invalidRequest`` for a URL of another scheme, and the errors of ``init(path:)``.
    public convenience init(_ file: URL) throws(TransferError) {
        guard file.isFileURL else {
            throw TransferError(
                .invalidRequest, "\(URLRedaction.redact(file.absoluteString)) is not the URL of a file")
        }
        try self.init(path: file.path(percentEncoded: false))
    }

    /// Opens the file found by a path walk, even if its path now leads elsewhere.
    ///
    /// - Parameter path: the path for messages.
    package convenience init(_ node: PathWalk.Node, path: String) throws(TransferError) {
        try Self.requireRegular(node.status, path)
        let raw = open("/proc/self/fd/\(node.descriptor.raw)", Self.flags)
        guard raw >= 0 else { throw .file(errno, doing: "open \(path)") }
        try self.init(FileDescriptorOwner(raw), path: path)
    }

    /// Uses a file opened by its user, in its current state.
    ///
    /// - Parameter path: the path for messages.
    package convenience init(_ file: PassedFile, path: String) throws(TransferError) {
        try self.init(file.descriptor, path: path)
    }

    private static let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY

    private init(_ descriptor: FileDescriptorOwner, path: String) throws(TransferError) {
        let status = try descriptor.status()
        try Self.requireRegular(status, path)
        self.descriptor = descriptor
        identity = Identity(status)
        owner = status.st_uid
        mode = status.st_mode
    }

    private static func requireRegular(_ status: stat, _ path: String) throws(TransferError) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TransferError(.invalidRequest, "\(path) is not a regular file")
        }
    }

    /// Reads the next bytes of the file, which must be in the state in which it was opened.
    ///
    /// - Returns: the number of bytes; 0 only at the end.
    /// - Throws: `sourceChanged` if the file changed. This is detected before the last byte is returned, so that a
    ///   changed file never makes a complete request.
    func read(into space: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TransferError) -> Int {
        let wanted = Int(min(Int64(space.count), identity.size - offset))
        guard wanted > 0 else { return 0 }
        let count = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]), at: offset)
        let isLast = offset + Int64(count) == identity.size
        guard count == wanted, !isLast || isUnchanged() else { throw .sourceChanged }
        return count
    }

    /// Whether the file is in the same state as when it was opened.
    func isUnchanged() -> Bool {
        guard let status = try? descriptor.status() else { return false }
        return Identity(status) == identity
    }
}
