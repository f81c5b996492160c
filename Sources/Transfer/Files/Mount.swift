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
        guard let information = ProcessFile.read("fdinfo/\(descriptor.raw)"),
            let line = information.split(separator: "\n").first(where: { $0.hasPrefix("mnt_id:") })
        else { return nil }
        number = String(line.drop { !$0.isNumber })
        self.fileSystem = fileSystem
        facts = Self.all()?[number]
    }

    /// What the kernel says of a mount, as it writes it.
    private struct Facts: Equatable, Sendable {
        /// Major and minor number of the file system, which may be given to another once it is unmounted.
        let device: String
        /// The directory that it is mounted on.
        let point: String
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
            let words = line.split(separator: " ", maxSplits: 5)
            if words.count == 6 { mounts[String(words[0])] = Facts(device: String(words[2]), point: String(words[4])) }
        }
        return mounts
    }
}
