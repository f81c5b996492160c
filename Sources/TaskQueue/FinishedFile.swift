import Glibc
import TaskModel
import Transfer

/// The file of a completed download, looked for where the task put it. Blocks for as long as the file system does.
struct FinishedFile {
    let record: TaskRecord
    /// The store's.
    let identity: String
    /// For a task that names no policy.
    let onConflict: ConflictPolicy

    /// - Returns: `nil` where the task has no such file, or the directory does not let one look.
    var state: FileState? {
        guard record.specification.kind == .download, record.standing.state == .completed, let path = record.path,
            let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let name = FileName.last(of: path)
        let parent = slash == path.utf8.startIndex ? "/" : String(path[..<slash])
        do throws(TransferError) {
            let directory = try Directory.open(root: parent)
            // A file that was there before the task says nothing of it.
            if (record.specification.onConflict ?? onConflict) == .skip {
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
