import Glibc
import TaskModel
import Transfer

/// A check of whether a completed download's file is still where the task put it. Blocks as long as the file system
/// does.
struct FinishedFile {
    let record: TaskRecord
    /// The store's identity.
    let identity: String
    let settings: QueueSettings

    /// The file's state; `nil` where the task has no such file, or the directory cannot be examined.
    var state: FileState? {
        guard record.specification.kind == .download, record.lifecycle.state == .completed, let path = record.path,
            let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let name = FileName.last(of: path)
        do throws(TransferError) {
            // The directory is resolved like a run resolves it. A symbolic link that leads elsewhere proves nothing
            // about the file.
            let specification = record.specification
            guard
                let place = try? DownloadPlace(
                    directory: specification.directory, owner: record.owner, settings: settings),
                place.path == (slash == path.utf8.startIndex ? "/" : String(path[..<slash]))
            else { return nil }
            guard let directory = try place.existing() else { return .missing }
            // The file may have existed before the task, so only its existence can be checked.
            if specification.update || settings.conflictPolicy(of: specification) == .skip {
                return directory.contains(name) ? .present : .missing
            }
            let owner = RequestMaker.owner(of: record, identity: identity)
            switch directory.holdsPublished(name, by: owner, size: record.bytesDone) {
            case nil: return .missing
            case true?: return .present
            case false?: return .replaced
            }
        } catch {
            return error.systemError == ENOENT ? .missing : nil
        }
    }
}
