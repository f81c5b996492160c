import CLinux
import Glibc

/// A file that another process opened and passed to this one (SCM_RIGHTS, unix(7)). It stays open until the last
/// reference to it goes.
package final class PassedFile: Sendable {
    /// Why a descriptor cannot be the source of an upload.
    package enum Unfitness: Error, Equatable {
        case notRegular
        case notReadable
        /// Whoever reads it may have to wait for another machine, or for a program of its user's.
        case onAnotherMachine
        /// The system's own reason (errno(3)).
        case system(Int32)
    }

    let descriptor: FileDescriptorOwner
    /// Whether its file system is one of this machine's, which answers by itself: see ``Mount/isLocal(_:)``.
    private let isLocal: Bool
    /// `nil` where the descriptor's owner calls it.
    private let released: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - raw: a descriptor, which belongs to the object from now on.
    ///   - released: called when the file is no longer needed and is closed.
    package init(taking raw: Int32, released: @escaping @Sendable () -> Void = {}) {
        // A file system of a user's own is told of the closing, and may never answer.
        isLocal = Mount.isLocal(raw)
        descriptor = FileDescriptorOwner(raw, closingApart: isLocal ? nil : released)
        self.released = isLocal ? released : nil
    }

    deinit { released?() }

    /// Closes a descriptor that nobody wants.
    package static func close(_ raw: Int32) {
        _ = Glibc.close(raw)  // nothing was written to it
    }

    /// The descriptor, for those who pass it on.
    package func withDescriptor<Value>(_ body: (Int32) -> Value) -> Value { body(descriptor.raw) }

    /// The directory of its name, as this process finds it; `nil` where it has none.
    package var parent: Inode? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor.raw)", &text, text.count)
        guard count > 0, count < text.count, text[0] == CChar(UInt8(ascii: "/")) else { return nil }
        let path = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.utf8.lastIndex(of: UInt8(ascii: "/")).flatMap { Inode.at(String(path[...$0])) }
    }

    /// What is known of a file without asking its file system, from a process that has it open.
    package struct Facts: Sendable {
        /// The number of its mount (proc_pid_mountinfo(5)).
        var mount: UInt64
        /// Of its file system: major and minor number.
        var device: (UInt32, UInt32)
        /// Whether that is on a disk of this machine.
        var isOnDisk: Bool
        /// Its `st_mode`.
        var mode: UInt32

        package init(mount: UInt64, device: (UInt32, UInt32), isOnDisk: Bool, mode: UInt32) {
            (self.mount, self.device, self.isOnDisk, self.mode) = (mount, device, isOnDisk, mode)
        }
    }

    /// Judges files that this process has not taken yet: what has no place here is then never opened in it, since it
    /// may never be closed again.
    ///
    /// - Parameter isTrusted: as of ``check(isTrusted:)``.
    /// - Returns: for each file why it is not to be taken, or `nil`.
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

    /// - Parameter isTrusted: whoever passed it may keep the daemon waiting.
    package func check(isTrusted: Bool) throws(Unfitness) {
        // First: what follows asks the file system.
        guard isTrusted || isLocal else { throw .onAnotherMachine }
        var status = stat()
        guard fstat(descriptor.raw, &status) == 0 else { throw .system(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .notRegular }
        let flags = fcntl(descriptor.raw, F_GETFL)
        guard flags >= 0 else { throw .system(errno) }
        guard flags & O_ACCMODE != O_WRONLY, flags & LINUX_O_PATH == 0 else { throw .notReadable }
        // A file system beneath an overlay's may be another machine's.
        guard isTrusted || !Directory.isOfAnotherMachine(descriptor.raw) else { throw .onAnotherMachine }
    }
}
