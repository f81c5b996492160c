import CLinux

/// A place where a file system is mounted (mount_namespaces(7)).
public struct Mount: Equatable, Sendable {
    /// The kernel's number for it; it may be another's once this is gone and nothing of it is open.
    private let number: String
    /// Which file system it shows where: its number may be that of another mount by now.
    private let facts: Facts?
    /// The file system.
    let fileSystem: UInt64

    /// - Returns: `nil` where the kernel does not say.
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

    /// Whether a file is on a file system that this process sees mounted, and that neither another machine nor a user's
    /// program answers for, or else on a disk. Asks the file system for nothing.
    ///
    /// Every user may mount in a name space of her own: FUSE, and whatever else lies above that. What hangs there keeps
    /// whoever touches it from going on, and from being killed.
    static func isLocal(_ descriptor: Int32) -> Bool {
        guard let mounts = Table(), let number = number(of: descriptor) else { return false }
        return mounts.isLocal(number, isOnDisk: linux_is_on_disk(descriptor) == 1) {
            var name = [CChar](repeating: 0, count: 32)
            guard linux_device_name(descriptor, &name, name.count) == 0 else { return nil }
            return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    /// What this process sees mounted at one moment.
    struct Table {
        private let mounts: [String: Facts]

        /// - Returns: `nil` where the kernel does not say.
        init?() {
            guard let mounts = Mount.all() else { return nil }
            self.mounts = mounts
        }

        /// See ``Mount/isLocal(_:)``.
        ///
        /// - Parameters:
        ///   - number: of the file's mount.
        ///   - isOnDisk: as `linux_is_on_disk` finds it.
        ///   - device: of its file system, as the kernel writes it; `nil` where that is not known.
        func isLocal(_ number: String, isOnDisk: Bool, device: () -> String?) -> Bool {
            if let own = mounts[number] { return !own.isElsewhere }
            // Another process's name space has numbers of its own for the same file systems.
            guard let device = device() else { return false }
            if let own = mounts.values.first(where: { $0.device == device }) { return !own.isElsewhere }
            // A service does not see what lies beneath a directory that is hidden from it (ProtectHome=).
            return isOnDisk
        }
    }

    /// What the kernel says of a mount, as it writes it.
    private struct Facts: Equatable, Sendable {
        /// Major and minor number of the file system, which may be given to another once it is unmounted.
        let device: String
        /// The directory that it is mounted on.
        let point: String
        /// The kind of file system.
        let kind: String

        /// Whether another machine or a program answers for it.
        var isElsewhere: Bool {
            kind.hasPrefix("fuse") || kind.hasPrefix("nfs")
                || ["9p", "afs", "autofs", "ceph", "cifs", "coda", "lustre", "smb3", "virtiofs"].contains(kind)
        }
    }

    /// Whether it is where it was, for this process to see; also where that cannot be told.
    var isAttached: Bool {
        guard let mounts = Self.all() else { return true }
        return mounts[number].map { facts == nil || $0 == facts } ?? false
    }

    /// All mounts by their numbers: proc_pid_mountinfo(5).
    private static func all() -> [String: Facts]? {
        guard let text = ProcessFile.read("mountinfo") else { return nil }
        var mounts: [String: Facts] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            // Behind a hyphen, after fields whose number differs.
            guard words.count > 6, let end = words.dropFirst(6).firstIndex(of: "-"), words.count > end + 1 else {
                continue
            }
            mounts[String(words[0])] = Facts(
                device: String(words[2]), point: String(words[4]), kind: String(words[end + 1]))
        }
        return mounts
    }
}
