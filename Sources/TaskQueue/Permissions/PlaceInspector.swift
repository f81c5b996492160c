import CLinux
import Glibc
package import TaskModel
import Transfer

/// The purpose of a directory or file.
package enum PlaceUse: Sendable, Equatable {
    /// A download directory. `makes`: Whether the daemon creates missing components of the path.
    case downloads(makes: Bool)
    /// A watched directory, in which users drop task files that are moved away once they are queued.
    case watch
    /// A directory beneath which uploads are read.
    case uploads
    /// A file of certificates.
    case certificates
    /// The directory in which the text file of metrics is replaced.
    case metrics

    /// Whether the place is only read.
    package var isOfReading: Bool { self == .uploads || self == .certificates }

    fileprivate var access: Int32 {
        switch self {
        case .downloads: W_OK | X_OK
        case .watch: R_OK | W_OK | X_OK
        case .metrics: W_OK | X_OK
        case .uploads: X_OK
        case .certificates: R_OK
        }
    }
}

/// The reason why a directory or file cannot be used for its purpose.
package struct PlaceProblem: Sendable, Equatable, CustomStringConvertible {
    /// The system error (errno(3)).
    package var systemError: Int32
    /// A single line with the path, the problem and the remedy.
    package var description: String

    package var code: ErrorCode {
        switch systemError {
        case ENOENT, ENOTDIR: .pathNotAllowed
        case EACCES, EPERM: .permissionDenied
        default: .io
        }
    }
}

/// A check of whether this process can use directories and files: existence, type, permissions and a writable file
/// system.
///
/// A path on a hanging file system blocks the caller.
package struct PlaceInspector: Sendable, Equatable {
    /// The systemd unit of this process; `nil` outside systemd.
    package var unit: String?
    /// The name of the effective user of this process.
    package var user: String

    package init(unit: String? = nil, uid: UInt32) {
        self.unit = unit
        user = AccountNames.name(of: uid) ?? "\(uid)"
    }

    /// Checks a path.
    ///
    /// - Parameter path: an absolute path.
    /// - Returns: `nil` where it can be used.
    package func problem(with path: String, for use: PlaceUse) -> PlaceProblem? {
        if let unit, Self.isTemporary(path), case let mounts = ProcessFile.read("mountinfo") ?? "",
            Self.isPrivate(path, mounts: mounts)
        {
            return PlaceProblem(systemError: ENOENT, description: Self.private(path, unit: unit))
        }
        var information = stat()
        guard stat(path, &information) == 0 else {
            let error = errno
            if error == ENOENT, case .downloads(makes: true) = use { return problem(makingUp: path) }
            return problem(reaching: path, error, use)
        }
        let wanted = use == .certificates ? S_IFREG : S_IFDIR
        guard information.st_mode & S_IFMT == wanted else {
            let kind = use == .certificates ? "a file" : "a directory"
            return PlaceProblem(systemError: ENOTDIR, description: "\(path) is not \(kind)")
        }
        guard faccessat(AT_FDCWD, path, use.access, AT_EACCESS) != 0 else {
            guard !use.isOfReading, Self.isOfKernel(path) else { return nil }
            let text = "\(path) is in a file system of the kernel, which holds no files; choose another directory"
            return PlaceProblem(systemError: ENOENT, description: text)
        }
        return problem(accessing: path, errno, use)
    }

    /// Whether a path is in a file system in which root too can make neither files nor directories, although its
    /// permissions allow it.
    private static func isOfKernel(_ path: String) -> Bool {
        let descriptor = linux_openat_name(AT_FDCWD, path + "/.")
        guard descriptor >= 0 else { return false }
        defer { _ = close(descriptor) }  // nothing was written
        // proc, sysfs, cgroup, cgroup2, debugfs, tracefs, devpts, securityfs, selinuxfs, configfs, bpf, pstore, efivarfs
        // (statfs(2), linux/magic.h).
        let numbers = [
            0x9FA0, 0x6265_6572, 0x0027_E0EB, 0x6367_7270, 0x6462_6720, 0x7472_6163, 0x1CD1, 0x7363_6673, 0xF97C_FF8C,
            0x6265_6570, 0xCAFE_4A11, 0x6165_676C, 0xDE5E_81E4,
        ]
        return numbers.contains(linux_file_system_type(descriptor))
    }

    /// Checks the nearest existing ancestor of a missing directory, in which the directory would be created.
    private func problem(makingUp path: String) -> PlaceProblem? {
        let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
        guard !parent.isEmpty else { return problem(with: "/", for: .downloads(makes: false)) }
        return problem(with: parent, for: .downloads(makes: true))
    }

    private func problem(reaching path: String, _ error: Int32, _ use: PlaceUse) -> PlaceProblem {
        let text =
            switch error {
            case ENOENT: "\(path) does not exist; \(hidden(path, use) ?? Self.remedy(forMissing: use))"
            case EACCES, EPERM:
                "the user \(user) cannot reach \(path); "
                    + (hidden(path, use)
                        ?? "give it search permission for the parent directories (chmod o+x, or setfacl)")
            case ENOTDIR: "\(path) does not exist: a part of the path is not a directory"
            default: "\(path) cannot be used (\(String(cString: strerror(error))))"
            }
        return PlaceProblem(systemError: error, description: text)
    }

    private static func remedy(forMissing use: PlaceUse) -> String {
        use == .certificates ? "name an existing file" : "create the directory, or mount its file system"
    }

    private func problem(accessing path: String, _ error: Int32, _ use: PlaceUse) -> PlaceProblem {
        let deed =
            switch use {
            case .downloads, .metrics: "written to"
            case .watch: "read and written to"
            case .uploads: "searched"
            case .certificates: "read"
            }
        let text =
            switch error {
            case EROFS: "\(path) cannot be \(deed) (Read-only file system); \(writableRemedy(path))"
            case EACCES, EPERM:
                "\(path) cannot be \(deed) by the user \(user); give it permission (chown, chmod or setfacl)"
            default: "\(path) cannot be \(deed) (\(String(cString: strerror(error))))"
            }
        return PlaceProblem(systemError: error, description: text)
    }

    /// Returns the remedy for a read-only directory.
    private func writableRemedy(_ path: String) -> String {
        guard let unit else { return "mount its file system for writing" }
        return Self.dropIn(["ReadWritePaths=-\(path)"], unit: unit)
            + "; a file system that is mounted read-only has to be mounted for writing first"
    }

    /// Returns the remedy for a file that this process cannot read; `nil` where there is none.
    func remedy(forUnreadable path: String, _ error: Int32?) -> String? {
        hidden(path, .uploads)
            ?? (error == ENOENT ? nil : "give the user \(user) permission to read it (chmod, chown or setfacl)")
    }

    /// Returns the remedy where the systemd unit may hide the directory; `nil` where it does not.
    private func hidden(_ path: String, _ use: PlaceUse) -> String? {
        guard let unit else { return nil }
        if Self.isTemporary(path) {
            return "PrivateTmp= may hide it from \(unit): name a directory outside of /tmp and /var/tmp"
        }
        guard Self.isHidden(path) else { return nil }
        return "ProtectHome= may hide it from \(unit): " + Self.dropIn(Self.showing(path, for: use), unit: unit)
    }

    /// Returns the systemd settings that make a directory beneath /home, /root or /run/user visible to a service. With
    /// `ProtectHome=yes` nothing can be bind-mounted beneath them.
    package static func showing(_ path: String, for use: PlaceUse) -> [String] {
        ["ProtectHome=tmpfs", use.isOfReading ? "BindReadOnlyPaths=-\(path)" : "BindPaths=-\(path)"]
    }

    /// Whether `PrivateTmp=yes` replaces the directory that contains the path (systemd.exec(5)).
    package static func isTemporary(_ path: String) -> Bool {
        lies(path, beneath: ["/tmp", "/var/tmp"])
    }

    /// Returns the text for a path that `PrivateTmp=yes` hides.
    package static func `private`(_ path: String, unit: String) -> String {
        "PrivateTmp=yes hides \(path) from \(unit); name a directory outside of /tmp and /var/tmp"
    }

    /// Whether a path leads into the directory that systemd mounts for `PrivateTmp=yes`.
    ///
    /// - Parameter mounts: the content of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
    static func isPrivate(_ path: String, mounts: String) -> Bool {
        var (root, length) = (""[...], -1)
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ", maxSplits: 5)
            guard fields.count > 5, lies(path, beneath: [String(fields[4])]) else { continue }
            // Of several mounts on one point the last one counts.
            if fields[4].utf8.count >= length { (root, length) = (fields[3], fields[4].utf8.count) }
        }
        return root.split(separator: "/").contains { $0.hasPrefix("systemd-private-") }
    }

    /// Whether `ProtectHome=yes` hides the path (systemd.exec(5)).
    package static func isHidden(_ path: String) -> Bool {
        lies(path, beneath: ["/home", "/root", "/run/user"])
    }

    /// Whether a path equals one of `places` or lies beneath it. Compares whole components byte by byte.
    package static func lies(_ path: String, beneath places: [String]) -> Bool {
        places.contains { place in
            path == place || path.utf8.starts(with: (place.hasSuffix("/") ? place : place + "/").utf8)
        }
    }

    /// Returns the instruction to add settings in a drop-in file.
    ///
    /// - Parameter settings: lines of the section `[Service]`.
    package static func dropIn(_ settings: [String], unit: String) -> String {
        let lines = settings.map { "\"\($0)\"" }.joined(separator: " and ")
        return "put \(lines) beneath a line \"[Service]\" in a drop-in (systemctl edit \(unit)) and restart the service"
    }
}
