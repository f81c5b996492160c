import CLinux

/// A mount of a file system (mount_namespaces(7)).
public struct Mount: Equatable, Sendable {
    /// The kernel's mount ID. The kernel may reuse it after the unmount, once nothing on the mount is open.
    private let number: String
    /// The file system and mount point, which reveal whether the mount ID was reused.
    private let facts: Facts?
    /// The device number of the file system.
    let fileSystem: UInt64

    /// - Returns: `nil` if the kernel does not report the mount.
    init?(of descriptor: FileDescriptorOwner, on fileSystem: UInt64) {
        guard let number = Self.number(of: descriptor.raw) else { return nil }
        self.number = number
        self.fileSystem = fileSystem
        facts = Self.all()?[number]
    }

    private static func number(of descriptor: Int32) -> String? {
        let lines = ProcessFile.read("fdinfo/\(descriptor)")?.split(separator: "\n")
        return lines?.first { $0.hasPrefix("mnt_id:") }.map { String($0.drop { !$0.isNumber }) }
    }

    /// Whether a file is on a file system that is mounted in this process's name space and is neither remote nor
    /// implemented by a program. If the file system is not mounted there, whether it is on a disk. The file system
    /// itself is not accessed.
    ///
    /// Every user can create mounts in a separate name space: FUSE, and other file systems on top of that. A stalled
    /// one can block a process that accesses it, and the process cannot even be killed.
    static func isLocal(_ descriptor: Int32) -> Bool {
        guard let mounts = Table(), let number = number(of: descriptor) else { return false }
        return mounts.isLocal(number, isOnDisk: linux_is_on_disk(descriptor) == 1) {
            var name = [CChar](repeating: 0, count: 32)
            guard linux_device_name(descriptor, &name, name.count) == 0 else { return nil }
            return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    /// A snapshot of the mounts in this process's name space.
    struct Table {
        private let mounts: [String: Facts]

        /// - Returns: `nil` if the kernel does not report the mounts.
        init?() {
            guard let mounts = Mount.all() else { return nil }
            self.mounts = mounts
        }

        /// Whether a file is local, see ``Mount/isLocal(_:)``.
        ///
        /// - Parameters:
        ///   - number: the ID of the file's mount.
        ///   - isOnDisk: the result of `linux_is_on_disk`.
        ///   - device: returns the device numbers of the file system in the kernel's notation; `nil` if they are
        ///     unknown.
        func isLocal(_ number: String, isOnDisk: Bool, device: () -> String?) -> Bool {
            if let own = mounts[number] { return !own.isElsewhere }
            // Another process's mount name space has other mount IDs for the same file systems.
            guard let device = device() else { return false }
            if let own = mounts.values.first(where: { $0.device == device }) { return !own.isElsewhere }
            // A service does not see mounts beneath a directory that is hidden from it (ProtectHome=).
            return isOnDisk
        }
    }

    /// The kernel's description of a mount, in its own notation.
    private struct Facts: Equatable, Sendable {
        /// The major and minor number of the file system; they may be reused after it is unmounted.
        let device: String
        /// The mount point.
        let point: String
        /// The type of the file system.
        let kind: String

        /// Whether the file system is remote or implemented by a program.
        var isElsewhere: Bool {
            kind.hasPrefix("fuse") || kind.hasPrefix("nfs")
                || ["9p", "afs", "autofs", "ceph", "cifs", "coda", "lustre", "smb3", "virtiofs"].contains(kind)
        }
    }

    /// Whether the mount is still in place, as this process sees it; also `true` if that cannot be determined.
    var isAttached: Bool {
        guard let mounts = Self.all() else { return true }
        return mounts[number].map { facts == nil || $0 == facts } ?? false
    }

    /// Returns all mounts by mount ID (proc_pid_mountinfo(5)).
    private static func all() -> [String: Facts]? {
        guard let text = ProcessFile.read("mountinfo") else { return nil }
        var mounts: [String: Facts] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            // The type follows a hyphen, after a variable number of fields.
            guard words.count > 6, let end = words.dropFirst(6).firstIndex(of: "-"), words.count > end + 1 else {
                continue
            }
            mounts[String(words[0])] = Facts(
                device: String(words[2]), point: String(words[4]), kind: String(words[end + 1]))
        }
        return mounts
    }
}
