import CLinux
import Glibc

/// A file opened by another process and passed to this one (SCM_RIGHTS, unix(7)). It stays open until the last
/// reference is released.
package final class PassedFile: Sendable {
    /// The reason why a descriptor cannot be the source of an upload.
    package enum Unfitness: Error, Equatable {
        case notRegular
        case notReadable
        /// The file is open with `O_DIRECT` (open(2)), for which each reader needs the same buffers as the device.
        case direct
        /// The file system is remote or implemented by a user's program, and may block its readers.
        case onAnotherMachine
        /// A system error (errno(3)).
        case system(Int32)
    }

    let descriptor: FileDescriptorOwner
    /// Whether the file system is local and responds on its own: see ``Mount/isLocal(_:)``.
    private let isLocal: Bool
    /// The release callback; `nil` if the descriptor's owner calls it.
    private let released: (@Sendable () -> Void)?

    /// Creates the object and takes ownership of the descriptor.
    ///
    /// - Parameters:
    ///   - raw: a descriptor, which the object owns from now on.
    ///   - released: called when the file is no longer needed and is closed.
    package init(taking raw: Int32, released: @escaping @Sendable () -> Void = {}) {
        // Closing a file on a user's own file system sends a request to that, and may block for ever.
        isLocal = Mount.isLocal(raw)
        descriptor = FileDescriptorOwner(raw, closingApart: isLocal ? nil : released)
        self.released = isLocal ? released : nil
    }

    deinit { released?() }

    /// Closes an unwanted descriptor.
    package static func close(_ raw: Int32) {
        _ = Glibc.close(raw)  // nothing was written to the descriptor
    }

    /// Calls `body` with the descriptor, so that it can be passed on.
    package func withDescriptor<Value>(_ body: (Int32) -> Value) -> Value { body(descriptor.raw) }

    /// The directory of the file's path as this process sees it; `nil` if there is none.
    package var parent: Inode? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor.raw)", &text, text.count)
        guard count > 0, count < text.count, text[0] == CChar(UInt8(ascii: "/")) else { return nil }
        let path = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.utf8.lastIndex(of: UInt8(ascii: "/")).flatMap { Inode.at(String(path[...$0])) }
    }

    /// Facts about a file, collected without access to its file system by a process that has it open.
    package struct Facts: Sendable {
        /// The mount ID (proc_pid_mountinfo(5)).
        var mount: UInt64
        /// The major and minor number of the file system.
        var device: (UInt32, UInt32)
        /// Whether the file system is on a disk of this machine.
        var isOnDisk: Bool
        /// The file's `st_mode`.
        var mode: UInt32

        package init(mount: UInt64, device: (UInt32, UInt32), isOnDisk: Bool, mode: UInt32) {
            (self.mount, self.device, self.isOnDisk, self.mode) = (mount, device, isOnDisk, mode)
        }
    }

    /// Validates files that this process has not received yet. An unsuitable file is thus never open in this process,
    /// where closing it might block for ever.
    ///
    /// - Parameter isTrusted: as in ``check(isTrusted:)``.
    /// - Returns: for each file the reason to reject it, or `nil`.
    package static func unfitness(
        of files: [Result<Facts, Unfitness>], isTrusted: Bool
    ) -> [Unfitness?] {
        let mounts = isTrusted ? nil : Mount.Table()
        return files.map { file in
            switch file {
            case .failure(let unfitness): return unfitness
            case .success(let facts):
                guard facts.mode & S_IFMT == S_IFREG else { return .notRegular }
                let isLocal =
                    mounts?.isLocal("\(facts.mount)", isOnDisk: facts.isOnDisk) {
                        "\(facts.device.0):\(facts.device.1)"
                    } ?? false
                return isTrusted || isLocal ? nil : .onAnotherMachine
            }
        }
    }

    /// Validates that the file can be the source of an upload.
    ///
    /// - Parameter isTrusted: whether the file's sender may block the daemon.
    package func check(isTrusted: Bool) throws(Unfitness) {
        // This check comes first, since the following ones access the file system.
        guard isTrusted || isLocal else { throw .onAnotherMachine }
        var status = stat()
        guard fstat(descriptor.raw, &status) == 0 else { throw .system(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
        let flags = fcntl(descriptor.raw, F_GETFL)
        guard flags >= 0 else { throw .system(errno) }
        guard flags & O_ACCMODE != O_WRONLY, flags & LINUX_O_PATH == 0 else { throw .notReadable }
        guard flags & LINUX_O_DIRECT == 0 else { throw .direct }
        // The file system beneath an overlay may be remote.
        guard isTrusted || !FileSystemType(of: descriptor.raw).isOfAnotherMachine else { throw .onAnotherMachine }
    }
}
