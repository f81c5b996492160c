import TaskModel
import Transfer

/// The target directory of a download: a root, which is opened by path, and a subdirectory, which is not.
struct DownloadPlace: Hashable {
    var root: String
    /// The path relative to the root, with normalised components; empty for the root itself. Where ``own`` is set, it
    /// begins with that directory's name.
    var subdirectory: String
    /// Whether the root is the configured download directory, which is created if missing.
    var makesRoot: Bool
    /// The private directory of the task's owner that is or contains this place; `nil` for a directory that is shared
    /// with other users.
    var own: OwnDirectory?
    /// Whether symbolic links between the root and the directory are followed: the owner may use every directory.
    var followsLinks = false

    /// A directory beneath the root that a single user uses.
    struct OwnDirectory: Hashable {
        var name: String
        var user: UInt32
    }

    /// The first component of a task's directory that lies in its owner's private directory.
    private static let ownMark = "~"

    /// Resolves the directory of an admitted task.
    ///
    /// - Parameter directory: the directory of an admitted task; see ``TaskSpecification/directory``.
    /// - Throws: ``FieldError`` where the directory is beneath none of the roots, or leads through a hidden directory.
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
        if settings.allowsEveryDirectory, settings.isTrusted(owner) {
            (root, subdirectory, makesRoot, followsLinks) = ("/", wanted.joined(separator: "/"), false, true)
            return
        }
        let match =
            ([home] + settings.downloadRoots)
            .map { Self.components($0) }
            .filter { wanted.starts(with: $0) }
            .max { $0.count < $1.count }
        guard let match else {
            throw FieldError(
                field: "directory", code: .pathNotAllowed,
                message: "\(directory) is not below a directory that allows downloads "
                    + "(\(settings.downloadRoots.joined(separator: ", "))); see downloads.roots in the configuration")
        }
        root = Self.absolute(match)
        try Self.checkHidden(wanted.dropFirst(match.count), directory)
        subdirectory = wanted.dropFirst(match.count).joined(separator: "/")
        makesRoot = match == Self.components(home)
    }

    /// Returns the final form of the directory that a task keeps from its admission on.
    ///
    /// - Parameters:
    ///   - directory: the directory as requested.
    ///   - isShared: Whether a relative directory is beneath the common directory, regardless of the layout. It does
    ///     not affect an absolute one.
    static func settled(
        _ directory: String?, isShared: Bool, owner: UInt32, settings: QueueSettings
    ) throws(FieldError) -> String? {
        guard !isOwn(directory) else {
            throw FieldError(
                field: "directory", message: "begins with ~, which only shells replace; give the whole path")
        }
        guard settings.layout == .perUser, owner != settings.daemonUser else { return directory }
        let names = components(directory ?? "")
        guard isShared || directory?.utf8.first == UInt8(ascii: "/") else {
            return ([ownMark] + names).joined(separator: "/")
        }
        // The users' private directories are siblings of the shared subdirectories.
        let isRelative = directory?.utf8.first != UInt8(ascii: "/")
        let home = isRelative ? [] : components(settings.downloadDirectory)
        guard names.starts(with: home), let first = names.dropFirst(home.count).first, !settings.isTrusted(owner),
            AccountNames.isDirectoryName(first)
        else { return directory }
        guard first == AccountNames.directoryName(of: owner) else {
            throw FieldError(
                field: "directory", code: .permissionDenied,
                message: "belongs to another user: \(first) below \(settings.downloadDirectory)")
        }
        return ([ownMark] + names.dropFirst(home.count + 1)).joined(separator: "/")
    }

    /// Whether a task's directory is its owner's private directory or lies in it.
    static func isOwn(_ directory: String?) -> Bool {
        guard let directory, directory.utf8.first != UInt8(ascii: "/") else { return false }
        return components(directory).first == ownMark
    }

    /// Refuses hidden directories. They contain settings and keys (`.ssh`, `.config/autostart`, `.git/hooks`) on which
    /// programs act.
    private static func checkHidden(_ components: some Sequence<String>, _ directory: String) throws(FieldError) {
        guard let hidden = components.first(where: { $0.utf8.first == UInt8(ascii: ".") }) else { return }
        throw FieldError(
            field: "directory", code: .pathNotAllowed,
            message: "\(directory) leads into the hidden directory \(hidden), where programs keep settings and keys; "
                + "to allow downloads there, add it to downloads.roots in the configuration")
    }

    /// Splits a path by bytes, so that a combining mark after a slash does not hide the slash.
    private static func components(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }.filter { $0 != "." }
    }

    private static func absolute(_ components: [String]) -> String { "/" + components.joined(separator: "/") }

    /// Returns the path of a file with this name.
    func path(of name: String) -> String {
        Directory.path(of: name, in: path)
    }

    /// The absolute path of the directory.
    var path: String { subdirectory.isEmpty ? root : Directory.path(of: subdirectory, in: root) }
}
