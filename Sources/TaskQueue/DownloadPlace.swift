import TaskModel
import Transfer

/// Where a download goes: a root, which is opened by its path, and what lies beneath it, which is not.
struct DownloadPlace: Hashable {
    var root: String
    /// Relative to the root, its components only; empty for the root itself. It begins with the name of ``own``.
    var subdirectory: String
    /// The root is the daemon's own, made where it is missing.
    var makesRoot: Bool
    /// The directory of the task's owner that it is or lies in; `nil` where others have files too.
    var own: OwnDirectory?

    /// A directory beneath the root that one user alone uses.
    struct OwnDirectory: Hashable {
        var name: String
        var user: UInt32
    }

    /// What a task's directory begins with that lies in its owner's own one.
    private static let ownMark = "~"

    /// - Parameter directory: of a task that was admitted; see ``TaskSpecification/directory``.
    /// - Throws: ``FieldError`` where the directory lies beneath none of the roots, or is a hidden one.
    init(directory: String?, owner: UInt32, settings: QueueSettings) throws(FieldError) {
        let home = settings.downloadDirectory
        guard let directory, directory.utf8.first == UInt8(ascii: "/") else {
            var components = Self.components(directory ?? "")
            if components.first == Self.ownMark {
                let name = AccountNames.directoryName(of: owner)
                own = OwnDirectory(name: name, user: owner)
                components[0] = name
            } else {
                try Self.checkHidden(components, directory ?? "")
            }
            root = Self.absolute(Self.components(home))
            subdirectory = components.joined(separator: "/")
            makesRoot = true
            return
        }
        let wanted = Self.components(directory)
        let match =
            ([home] + settings.downloadRoots)
            .map { Self.components($0) }
            .filter { wanted.starts(with: $0) }
            .max { $0.count < $1.count }
        guard let match else {
            throw FieldError(
                field: "directory", code: .pathNotAllowed,
                message: "\(directory) lies beneath none of the places that downloads may go to "
                    + "(\(settings.downloadRoots.joined(separator: ", "))); see downloads.roots in the configuration")
        }
        root = Self.absolute(match)
        try Self.checkHidden(wanted.dropFirst(match.count), directory)
        subdirectory = wanted.dropFirst(match.count).joined(separator: "/")
        makesRoot = match == Self.components(home)
    }

    /// The directory that a task is to have from its admission on.
    ///
    /// - Parameters:
    ///   - directory: as it was asked for.
    ///   - isShared: a relative one is beneath the common directory, whatever the layout; an absolute one is what it is.
    static func settled(
        _ directory: String?, isShared: Bool, owner: UInt32, settings: QueueSettings
    ) throws(FieldError) -> String? {
        let isOwn = isOwn(directory)
        guard !(isShared && isOwn) else {
            throw FieldError(field: "directory", message: "is beneath your own directory, which is not a shared one")
        }
        guard settings.layout == .perUser, owner != settings.daemonUser, !isOwn else { return directory }
        let names = components(directory ?? "")
        guard isShared || directory?.utf8.first == UInt8(ascii: "/") else {
            return ([ownMark] + names).joined(separator: "/")
        }
        // Users' directories lie beside what all of them share.
        let isRelative = directory?.utf8.first != UInt8(ascii: "/")
        let home = isRelative ? [] : components(settings.downloadDirectory)
        guard names.starts(with: home), let first = names.dropFirst(home.count).first, !settings.isTrusted(owner),
            AccountNames.isDirectoryName(first)
        else { return directory }
        guard first == AccountNames.directoryName(of: owner) else {
            throw FieldError(
                field: "directory", code: .permissionDenied,
                message: "is that of another user: \(first) beneath \(settings.downloadDirectory)")
        }
        return ([ownMark] + names.dropFirst(home.count + 1)).joined(separator: "/")
    }

    /// Whether a task's directory is its owner's own, or lies in it.
    static func isOwn(_ directory: String?) -> Bool {
        guard let directory, directory.utf8.first != UInt8(ascii: "/") else { return false }
        return components(directory).first == ownMark
    }

    /// Hidden directories hold settings and keys (`.ssh`, `.config/autostart`, `.git/hooks`), and programs act by what
    /// lies in them.
    private static func checkHidden(_ components: some Sequence<String>, _ directory: String) throws(FieldError) {
        guard let hidden = components.first(where: { $0.utf8.first == UInt8(ascii: ".") }) else { return }
        throw FieldError(
            field: "directory", code: .pathNotAllowed,
            message: "\(directory) leads into the hidden directory \(hidden), where programs keep settings and keys; "
                + "if downloads belong there, name it in downloads.roots in the configuration")
    }

    /// By bytes: a mark that combines with a slash does not hide it.
    private static func components(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }.filter { $0 != "." }
    }

    private static func absolute(_ components: [String]) -> String { "/" + components.joined(separator: "/") }

    /// The path of a file of this name.
    func path(of name: String) -> String {
        Directory.path(of: name, in: path)
    }

    /// The directory's own.
    var path: String { subdirectory.isEmpty ? root : Directory.path(of: subdirectory, in: root) }
}
