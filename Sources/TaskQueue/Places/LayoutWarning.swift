import TaskModel
import Transfer

/// What does not hold of the layout `per-user` where the file system has no access control lists.
package enum LayoutWarning {
    /// Looks at the directory of downloads, and blocks for as long as its file system does.
    package static func texts(_ settings: QueueSettings) -> [String] {
        guard settings.layout == .perUser, let directory = try? Directory.open(root: settings.downloadDirectory),
            !directory.hasAccessControlLists
        else { return [] }
        return [
            "downloads.layout is per-user, and the file system of \(settings.downloadDirectory) has no access control "
                + "lists: the umask says who may read the users' directories, and nobody but the daemon may move or "
                + "remove what lies in them"
        ]
    }
}

extension TaskQueue {
    /// As ``LayoutWarning/texts(_:)``, for a moment only; nothing where that is not known in time.
    package func layoutWarnings(_ settings: QueueSettings) async -> [String] {
        await placeGuard.judge { LayoutWarning.texts(settings) } ?? []
    }
}
