/// A place where a file system is mounted (mount_namespaces(7)).
public struct Mount: Equatable, Sendable {
    /// The kernel's number for it; it may be another's once this is gone and nothing of it is open.
    private let number: String
    /// Major and minor number of the file system, as the kernel writes them.
    private let device: String?
    /// The file system.
    let fileSystem: UInt64

    /// - Returns: `nil` where the kernel does not say.
    init?(of descriptor: FileDescriptorOwner, on fileSystem: UInt64) {
        guard let facts = ProcessFile.read("fdinfo/\(descriptor.raw)"),
            let line = facts.split(separator: "\n").first(where: { $0.hasPrefix("mnt_id:") })
        else { return nil }
        number = String(line.drop { !$0.isNumber })
        self.fileSystem = fileSystem
        device = Self.lines()?[number]
    }

    /// Whether it is part of what this process sees; also where that cannot be told.
    var isAttached: Bool {
        guard let mounts = Self.lines() else { return true }
        return mounts[number].map { device == nil || $0 == device } ?? false
    }

    /// File systems by the numbers of their mounts: proc_pid_mountinfo(5).
    private static func lines() -> [String: String]? {
        guard let text = ProcessFile.read("mountinfo") else { return nil }
        var devices: [String: String] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3)
            if words.count == 4 { devices[String(words[0])] = String(words[2]) }
        }
        return devices
    }
}
