import TaskModel

/// Where a download goes: a root, which is opened by its path, and what lies beneath it, which is not.
struct DownloadPlace: Equatable {
    var root: String
    /// Relative to the root; empty for the root itself.
    var subdirectory: String
    /// The root is the daemon's own, made where it is missing.
    var makesRoot: Bool

    /// - Throws: ``FieldError`` where the directory lies beneath none of the roots.
    init(directory: String?, settings: QueueSettings) throws(FieldError) {
        let home = settings.downloadDirectory
        guard let directory, directory.hasPrefix("/") else {
            root = home
            subdirectory = directory ?? ""
            makesRoot = true
            return
        }
        let wanted = Self.components(directory)
        let match =
            ([home] + settings.downloadRoots)
            .map { (path: $0, components: Self.components($0)) }
            .filter { wanted.starts(with: $0.components) }
            .max { $0.components.count < $1.components.count }
        guard let match else {
            throw FieldError(
                field: "directory", code: .pathNotAllowed,
                message: "\(directory) lies beneath none of the places that downloads may go to "
                    + "(\(settings.downloadRoots.joined(separator: ", "))); see downloads.roots in the configuration")
        }
        root = match.path
        subdirectory = wanted.dropFirst(match.components.count).joined(separator: "/")
        makesRoot = match.components == Self.components(home)
    }

    private static func components(_ path: String) -> [Substring] {
        path.split(separator: "/").filter { $0 != "." }
    }

    /// The path of a file of this name.
    func path(of name: String) -> String {
        let base = root == "/" ? "" : root
        return subdirectory.isEmpty ? "\(base)/\(name)" : "\(base)/\(subdirectory)/\(name)"
    }
}
