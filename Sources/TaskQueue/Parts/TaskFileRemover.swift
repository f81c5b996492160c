import TaskModel
import TaskStore
import Transfer

/// Removes the files of tasks that are about to be removed or moved, and syncs their directories.
///
/// Tasks that are removed together usually have few directories. Each is therefore opened once for many tasks.
struct TaskFileRemover {
    /// The options that determine a task's directory.
    private struct Key: Hashable {
        var directory: String?
        var owner: UInt32
    }

    private let settings: QueueSettings
    private let identity: String
    /// The directories of tasks; `nil` for one that does not exist or cannot be opened.
    private var opened: [Key: Directory?] = [:]
    private var touched = TouchedDirectories()

    /// The maximum number of directories that are open at once.
    private static let limit = 64

    /// - Parameter identity: the identity of the state directory, which is part of the names of part files.
    init(settings: QueueSettings, identity: String) {
        self.settings = settings
        self.identity = identity
    }

    /// Removes a task's part file. A completed task may still have one, if its disk refused the removal.
    mutating func removePart(of record: TaskRecord) {
        guard record.lifecycle.state == .completed else {
            return removePart(of: record.id, record.specification, owner: record.owner)
        }
        let (name, owner) = (
            RequestMaker.partName(record.id, identity: identity), RequestMaker.owner(of: record, identity: identity)
        )
        remove(from: record.specification, owner: record.owner) { directory in
            (try? directory.removePart(name, of: owner)) ?? false
        }
    }

    /// Removes a part file.
    ///
    /// - Parameter specification: the task's options when the part file was created.
    mutating func removePart(of id: TaskID, _ specification: TaskSpecification, owner: UInt32) {
        let name = RequestMaker.partName(id, identity: identity)
        remove(from: specification, owner: owner) { directory in (try? directory.removePart(name)) ?? false }
    }

    /// Removes the file of a completed download.
    ///
    /// - Returns: the path of a file that has the name of the task's file but is a different one; otherwise `nil`.
    mutating func removeFile(of record: TaskRecord) -> String? {
        guard record.lifecycle.state == .completed, let path = record.path else { return nil }
        let owner = RequestMaker.owner(of: record, identity: identity)
        var foreign: String?
        remove(from: record.specification, owner: record.owner) { directory in
            let name = FileName.last(of: path)
            let isRemoved =
                path == directory.path(of: name)
                && ((try? directory.removePublished(name, by: owner, size: record.bytesDone)) ?? false)
            if !isRemoved { foreign = path }
            return isRemoved
        }
        return foreign
    }

    /// Syncs the directories from which files were removed, and closes all directories.
    mutating func finish() {
        touched.synchronize()
        touched = TouchedDirectories()
        opened.removeAll()
    }

    /// Calls `body` with the directory of a download, if it exists.
    ///
    /// - Parameter body: returns whether it removed a file.
    private mutating func remove(
        from specification: TaskSpecification, owner: UInt32, _ body: (Directory) -> Bool
    ) {
        guard specification.kind == .download else { return }
        let key = Key(directory: specification.directory, owner: owner)
        if opened[key] == nil {
            if opened.count >= Self.limit { finish() }
            let place = try? DownloadPlace(directory: specification.directory, owner: owner, settings: settings)
            opened[key] = .some((try? place?.existing()) ?? nil)
        }
        guard let directory = opened[key] ?? nil, body(directory) else { return }
        touched.insert(directory)
    }
}
