import Glibc
import TaskModel

/// What a directory is used for.
package enum PlaceUse: Sendable, Equatable {
    /// Downloads go there. `makes`: the daemon makes what is missing of the path.
    case downloads(makes: Bool)
    /// Files of tasks are dropped there and moved away once they are queued.
    case watch
    /// Uploads are read from beneath it.
    case uploads

    fileprivate var access: Int32 {
        switch self {
        case .downloads: W_OK | X_OK
        case .watch: R_OK | W_OK | X_OK
        case .uploads: X_OK
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
        user = Self.name(of: uid)
    }

    /// A number where the system's accounts have no name for it.
    private static func name(of uid: UInt32) -> String {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(uid, &account, &space, space.count, &found) == 0, let name = found?.pointee.pw_name else {
            return "\(uid)"
        }
        return String(cString: name)
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
        guard information.st_mode & S_IFMT == S_IFDIR else {
            return PlaceProblem(systemError: ENOTDIR, description: "\(path) is not a directory")
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
            case ENOENT:
                "\(path) does not exist; \(hidden(path, use) ?? "make the directory, or mount what belongs there")"
            case EACCES, EPERM:
                "the user \(user) cannot reach \(path); "
                    + (hidden(path, use) ?? "let it search the directories that lead there (chmod o+x, or setfacl)")
            case ENOTDIR: "\(path) does not exist: a part of the path is not a directory"
            default: "\(path) cannot be used (\(String(cString: strerror(error))))"
            }
        return PlaceProblem(systemError: error, description: text)
    }

    private func problem(accessing path: String, _ error: Int32, _ use: PlaceUse) -> PlaceProblem {
        let deed =
            switch use {
            case .downloads: "written to"
            case .watch: "read and written to"
            case .uploads: "searched"
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
        return Self.dropIn(Self.isHidden(path) ? "BindPaths=\(path)" : "ReadWritePaths=\(path)", unit: unit)
            + "; a file system that is mounted read-only has to be mounted for writing first"
    }

    /// What shows a directory that `ProtectHome=` hides; `nil` where it is not one of those.
    private func hidden(_ path: String, _ use: PlaceUse) -> String? {
        guard let unit, Self.isHidden(path) else { return nil }
        let setting = use == .uploads ? "BindReadOnlyPaths" : "BindPaths"
        return "ProtectHome= may hide it from \(unit): " + Self.dropIn("\(setting)=\(path)", unit: unit)
    }

    /// Whether a path lies where `ProtectHome=yes` hides everything (systemd.exec(5)).
    package static func isHidden(_ path: String) -> Bool {
        ["/home/", "/root/", "/run/user/"].contains { (path + "/").hasPrefix($0) }
    }

    /// - Parameter setting: a line of the section `[Service]`.
    package static func dropIn(_ setting: String, unit: String) -> String {
        "write `[Service] \(setting)` into a drop-in (systemctl edit \(unit)) and restart the service"
    }
}
