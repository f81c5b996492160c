import TaskModel
import Transfer

/// Where a download goes: a root, which is opened by its path, and what lies beneath it, which is not.
struct DownloadPlace: Hashable {
    var root: String
    /// Relative to the root, its components only; empty for the root itself.
    var subdirectory: String
    /// The root is the daemon's own, made where it is missing.
    var makesRoot: Bool

    /// - Throws: ``FieldError`` where the directory lies beneath none of the roots.
    init(directory: String?, settings: QueueSettings) throws(FieldError) {
        let home = settings.downloadDirectory
        guard let directory, directory.utf8.first == UInt8(ascii: "/") else {
            root = Self.absolute(Self.components(home))
            subdirectory = Self.components(directory ?? "").joined(separator: "/")
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
        subdirectory = wanted.dropFirst(match.count).joined(separator: "/")
        makesRoot = match == Self.components(home)
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
