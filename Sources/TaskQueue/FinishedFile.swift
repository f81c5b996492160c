import Glibc
import TaskModel
import Transfer

/// The file of a completed download, looked for where the task put it. Blocks for as long as the file system does.
struct FinishedFile {
    let record: TaskRecord
    /// The store's.
    let identity: String
    let settings: QueueSettings

    /// - Returns: `nil` where the task has no such file, or the directory does not let one look.
    var state: FileState? {
        guard record.specification.kind == .download, record.standing.state == .completed, let path = record.path,
            let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let name = FileName.last(of: path)
        do throws(TransferError) {
            // As each run opens it: a link that leads elsewhere tells nothing of what is there.
            let specification = record.specification
            guard
                let place = try? DownloadPlace(
                    directory: specification.directory, owner: record.owner, settings: settings),
                place.path == (slash == path.utf8.startIndex ? "/" : String(path[..<slash]))
            else { return nil }
            guard let directory = try place.existing() else { return .missing }
            // A file that was there before the task says nothing of it.
            if (specification.onConflict ?? settings.onConflict) == .skip {
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
