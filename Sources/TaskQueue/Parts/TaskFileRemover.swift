import TaskModel
import TaskStore
import Transfer

/// Removes the files of tasks that are about to be removed or moved, and syncs their directories.
///
/// Tasks that are removed together usually have few directories. Each is therefore opened once for many tasks.
struct TaskFileRemover {
    private let settings: QueueSettings
    private let identity: String
    private let synchronize: (Directory) -> Void
    private var opened: [PartPlace: Directory] = [:]
    /// The directories from which files were removed. Until they are synced, the files can reappear after a power
    /// failure.
    private var touched: Set<PartPlace> = []

    /// The maximum number of directories that are open at once.
    private static let limit = 64

    /// Creates a remover.
    ///
    /// - Parameters:
    ///   - identity: the identity of the state directory, which is part of the names of part files.
    ///   - synchronize: syncs a directory. Errors are ignored: a disk that fails here also fails the removal of files,
    ///     which must not prevent the removal of tasks.
    init(
        settings: QueueSettings, identity: String,
        synchronize: @escaping (Directory) -> Void = { try? $0.synchronize() }
    ) {
        self.settings = settings
        self.identity = identity
        self.synchronize = synchronize
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
    /// - Returns: the file, if it had to be kept; `nil` if it is removed or no longer exists.
    mutating func removeFile(of record: TaskRecord) -> KeptFile? {
        guard record.specification.kind == .download, record.lifecycle.state == .completed, let path = record.path
        else { return nil }
        let (place, owner) = (
            PartPlace(directory: record.specification.directory, owner: record.owner),
            RequestMaker.owner(of: record, identity: identity)
        )
        do throws(TransferError) {
            guard let directory = try directory(at: place) else { return nil }
            let name = FileName.last(of: path)
            guard path == directory.path(of: name) else {
                return KeptFile(
                    path: path, code: .pathNotAllowed,
                    reason: "the task's directory is \(directory.path) since a change of the configuration")
            }
            guard try directory.removePublished(name, by: owner, size: record.bytesDone) else {
                return KeptFile(
                    path: path, code: .nameConflict, reason: "it is not the downloaded file, or was changed since")
            }
            touched.insert(place)
            return nil
        } catch {
            return KeptFile(path: path, code: ErrorCode(rawValue: error.code.rawValue), reason: error.message)
        }
    }

    /// Syncs each directory from which files were removed, once, whatever the order of the tasks was.
    mutating func finish() {
        for place in touched {
            if let directory = (try? directory(at: place)) ?? nil { synchronize(directory) }
        }
        touched.removeAll()
        opened.removeAll()
    }

    /// Calls `body` with the directory of a download, if it exists and can be opened.
    ///
    /// - Parameter body: returns whether it removed a file.
    private mutating func remove(
        from specification: TaskSpecification, owner: UInt32, _ body: (Directory) -> Bool
    ) {
        guard specification.kind == .download else { return }
        let place = PartPlace(directory: specification.directory, owner: owner)
        guard let directory = (try? directory(at: place)) ?? nil, body(directory) else { return }
        touched.insert(place)
    }

    /// Returns an open directory; `nil` if it does not exist.
    private mutating func directory(at place: PartPlace) throws(TransferError) -> Directory? {
        if let directory = opened[place] { return directory }
        let allowed = try DownloadPlace(allowed: place.directory, owner: place.owner, settings: settings)
        guard let directory = try allowed.existing() else { return nil }
        if opened.count >= Self.limit { opened.removeAll() }
        opened[place] = directory
        return directory
    }
}
