import Glibc

/// A file to send, opened once: what is read is of this very file, and a change to it meanwhile is noticed.
public final class UploadSource: Sendable {
    /// What tells one state of a file from another.
    public struct Identity: Sendable, Equatable, Codable {
        /// The file system, as `st_dev` has it.
        public var device: UInt64
        /// The file in it, as `st_ino` has it.
        public var inode: UInt64
        /// Bytes.
        public var size: Int64
        /// Nanoseconds since 1970.
        public var modified: Int64

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            modified = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
        }
    }

    let descriptor: FileDescriptorOwner
    /// The state that the file was in when it was opened.
    public let identity: Identity
    /// The file's owner and mode, for whoever has to decide who may send it.
    public let owner: UInt32
    /// As `st_mode` has it: type and permissions.
    public let mode: UInt32

    /// Opens a regular file; anything else is refused, and nothing blocks on a FIFO.
    public convenience init(path: String) throws(TransferError) {
        let raw = open(path, Self.flags)
        guard raw >= 0 else {
            if errno == ENOENT || errno == ENOTDIR {
                throw TransferError(.sourceChanged, "there is no file \(path) to upload", systemError: errno)
            }
            throw .file(errno, doing: "open \(path)")
        }
        try self.init(FileDescriptorOwner(raw), path: path)
    }

    /// Opens what a walk has led to: that very file, whatever its path leads to by now.
    ///
    /// - Parameter path: for messages.
    package convenience init(_ node: PathWalk.Node, path: String) throws(TransferError) {
        try Self.requireRegular(node.status, path)
        let raw = open("/proc/self/fd/\(node.descriptor.raw)", Self.flags)
        guard raw >= 0 else { throw .file(errno, doing: "open \(path)") }
        try self.init(FileDescriptorOwner(raw), path: path)
    }

    /// Takes a file that its user opened, in the state that it is in now.
    ///
    /// - Parameter path: for messages.
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

    /// Reads what comes next of the file in the state that it was opened in.
    ///
    /// - Returns: how many bytes; 0 at the end alone.
    /// - Throws: `sourceChanged` where it is not that any more, which is seen before the last byte is handed out: a changed
    ///   file must not make a complete request.
    func read(into space: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TransferError) -> Int {
        let wanted = Int(min(Int64(space.count), identity.size - offset))
        guard wanted > 0 else { return 0 }
        let count = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]), at: offset)
        let isLast = offset + Int64(count) == identity.size
        guard count == wanted, !isLast || isUnchanged() else { throw .sourceChanged }
        return count
    }

    /// Whether the file is still what it was when it was opened.
    func isUnchanged() -> Bool {
        guard let status = try? descriptor.status() else { return false }
        return Identity(status) == identity
    }
}
