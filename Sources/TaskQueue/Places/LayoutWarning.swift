import TaskModel
import Transfer

/// Warnings about the guarantees that the layout `per-user` loses on a file system without access control lists.
package enum LayoutWarning {
    /// Returns the warnings for the download directory. Blocks as long as its file system does.
    package static func texts(_ settings: QueueSettings) -> [String] {
        guard settings.layout == .perUser, let directory = try? Directory.open(root: settings.downloadDirectory),
            !directory.hasAccessControlLists
        else { return [] }
        return [
            "downloads.layout is per-user, and the file system of \(settings.downloadDirectory) does not "
                + "support access control lists: the umask decides who may read the users' directories, and only the "
                + "daemon may move or remove files in them"
        ]
    }
}
