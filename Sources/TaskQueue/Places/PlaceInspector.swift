import Glibc
import TaskModel

/// What a directory, or a file, is used for.
package enum PlaceUse: Sendable, Equatable {
    /// Downloads go there. `makes`: the daemon makes what is missing of the path.
    case downloads(makes: Bool)
    /// Files of tasks are dropped there and moved away once they are queued.
    case watch
    /// Uploads are read from beneath it.
    case uploads
    /// A file of certificates.
    case certificates

    /// It is only read.
    package var isOfReading: Bool { self == .uploads || self == .certificates }

    fileprivate var access: Int32 {
        switch self {
        case .downloads: W_OK | X_OK
        case .watch: R_OK | W_OK | X_OK
        case .uploads: X_OK
        case .certificates: R_OK
        }
    }
}

/// Why a directory cannot be used as it is meant to.
package struct PlaceProblem: Sendable, Equatable, CustomStringConvertible {
    /// What the system said (errno(3)).
    package var systemError: Int32
    /// One line: the directory, what is wrong with it, and what helps.
    package var description: String

    package var code: ErrorCode {
        switch systemError {
        case ENOENT, ENOTDIR: .pathNotAllowed
        case EACCES, EPERM: .permissionDenied
        default: .io
        }
    }
}

/// Looks whether directories can be used by this process: existence, kind, rights, and whether they can be written to.
///
/// A path on a file system that hangs blocks the caller.
package struct PlaceInspector: Sendable, Equatable {
    /// The unit of systemd that this process runs as; `nil` outside of one.
    package var unit: String?
    /// The name of the user that this process acts as.
    package var user: String

    package init(unit: String? = nil, uid: UInt32) {
        self.unit = unit
        user = AccountNames.name(of: uid) ?? "\(uid)"
    }

    /// - Parameter path: absolute.
    /// - Returns: `nil` for a directory that can be used.
    package func problem(with path: String, for use: PlaceUse) -> PlaceProblem? {
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
        guard faccessat(AT_FDCWD, path, use.access, AT_EACCESS) != 0 else { return nil }
        return problem(accessing: path, errno, use)
    }

    /// A directory that is missing and would be made: in the nearest one that is there.
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
                    + (hidden(path, use) ?? "let it search the directories that lead there (chmod o+x, or setfacl)")
            case ENOTDIR: "\(path) does not exist: a part of the path is not a directory"
            default: "\(path) cannot be used (\(String(cString: strerror(error))))"
            }
        return PlaceProblem(systemError: error, description: text)
    }

    private static func remedy(forMissing use: PlaceUse) -> String {
        use == .certificates ? "name a file that is there" : "make the directory, or mount what belongs there"
    }

    private func problem(accessing path: String, _ error: Int32, _ use: PlaceUse) -> PlaceProblem {
        let deed =
            switch use {
            case .downloads: "written to"
            case .watch: "read and written to"
            case .uploads: "searched"
            case .certificates: "read"
            }
        let text =
            switch error {
            case EROFS: "\(path) cannot be \(deed) (Read-only file system); \(writableRemedy(path))"
            case EACCES, EPERM:
                "\(path) cannot be \(deed) by the user \(user); give it the right (chown, chmod or setfacl)"
            default: "\(path) cannot be \(deed) (\(String(cString: strerror(error))))"
            }
        return PlaceProblem(systemError: error, description: text)
    }

    /// What makes a read-only directory writable.
    private func writableRemedy(_ path: String) -> String {
        guard let unit else { return "mount its file system for writing" }
        return Self.dropIn(["ReadWritePaths=-\(path)"], unit: unit)
            + "; a file system that is mounted read-only has to be mounted for writing first"
    }

    /// What helps where the unit may hide a directory; `nil` where it does not.
    private func hidden(_ path: String, _ use: PlaceUse) -> String? {
        guard let unit else { return nil }
        if Self.isTemporary(path) {
            return "PrivateTmp= may hide it from \(unit): name a directory outside of /tmp and /var/tmp"
        }
        guard Self.isHidden(path) else { return nil }
        return "ProtectHome= may hide it from \(unit): " + Self.dropIn(Self.showing(path, for: use), unit: unit)
    }

    /// The settings that show a directory beneath /home, /root or /run/user to a service. With `ProtectHome=yes` nothing
    /// can be bound beneath them.
    package static func showing(_ path: String, for use: PlaceUse) -> [String] {
        ["ProtectHome=tmpfs", use.isOfReading ? "BindReadOnlyPaths=-\(path)" : "BindPaths=-\(path)"]
    }

    /// Whether a path lies where `PrivateTmp=yes` shows another directory (systemd.exec(5)).
    package static func isTemporary(_ path: String) -> Bool {
        lies(path, beneath: ["/tmp", "/var/tmp"])
    }

    /// Whether a path lies where `ProtectHome=yes` hides everything (systemd.exec(5)).
    package static func isHidden(_ path: String) -> Bool {
        lies(path, beneath: ["/home", "/root", "/run/user"])
    }

    /// Whether a path is one of `places` or leads beneath it, by whole components and by bytes.
    package static func lies(_ path: String, beneath places: [String]) -> Bool {
        places.contains { place in
            path == place || path.utf8.starts(with: (place.hasSuffix("/") ? place : place + "/").utf8)
        }
    }

    /// - Parameter settings: lines of the section `[Service]`.
    package static func dropIn(_ settings: [String], unit: String) -> String {
        let lines = settings.map { "`\($0)`" }.joined(separator: " and ")
        return "put \(lines) beneath a line `[Service]` in a drop-in (systemctl edit \(unit)) and restart the service"
    }
}
