import TaskModel
import TaskStore
import Transfer

/// An evaluator of which part files of this store no task will continue.
///
/// A part file is kept wherever this is uncertain. Queued, waiting, paused, failed and cancelled tasks continue with
/// their part files. A completed task never does, nor does a removed one.
///
/// The database may be an older copy that was restored from a backup. It does not know the tasks that only the newer
/// database contained. Their part files are kept, so that the newer database can be restored in turn. Their numbers are
/// above the newest number that this database has assigned. Once this database assigns such a number itself, the part
/// file shows an earlier time than the daemon's lifetime (``StoreLifetime``) in which that happened. The time is that
/// of the task, recorded in the mark on the part file (see ``PartFile``). Without a mark, as on FAT, it is the part
/// file's last modification, which is never earlier.
struct PartEvaluator {
    /// The store's identity.
    let identity: String
    let lifetimes: [StoreLifetime]

    /// The maximum rounding of file times, in milliseconds. FAT rounds down to two seconds.
    private static let rounding: Milliseconds = 2_000

    /// Returns the task number in the name of this store's part file; `nil` for every other name.
    static func id(in name: String, identity: String) -> TaskID? {
        let (beginning, ending) = affixes(identity)
        guard name.utf8.starts(with: beginning.utf8), name.utf8.count > beginning.utf8.count + ending.utf8.count else {
            return nil
        }
        let digits = String(
            decoding: name.utf8.dropFirst(beginning.utf8.count).dropLast(ending.utf8.count), as: UTF8.self)
        // Only the canonical decimal form counts: no sign, no leading zero.
        guard let number = Int64(digits), number > 0,
            RequestMaker.partName(TaskID(number), identity: identity) == name
        else { return nil }
        return TaskID(number)
    }

    /// Returns the prefix and the suffix of the names of this store's part files.
    static func affixes(_ identity: String) -> (beginning: String, ending: String) { (".dld-\(identity)-", ".part") }

    /// Whether no task will continue the part file.
    ///
    /// - Parameters:
    ///   - task: the task that has the number now; `nil` where there is none.
    ///   - newest: the greatest number that this database has assigned.
    ///   - traces: the mark and the time of the part file.
    func isLeft(_ id: TaskID, _ task: PartTask?, newest: TaskID, _ traces: Directory.PartTraces) -> Bool {
        guard id <= newest else { return false }
        let begun: Milliseconds
        switch traces.owner {
        case nil: begun = traces.changed + Self.rounding
        case let owner?:
            guard let createdAt = createdAt(id, owner) else { return false }
            begun = createdAt
        }
        if let task {
            guard task.isCompleted else { return false }
            return traces.owner == nil ? begun >= task.createdAt : begun == task.createdAt
        }
        // The period of daemon operation in which the number was assigned. For a number from before the first known
        // period, no copy has been restored since.
        guard let lifetime = lifetimes.last(where: { $0.newest < id }) else { return true }
        return begun >= lifetime.since
    }

    /// Returns the creation time of the task that the mark `owner` names; `nil` where the mark is of another task.
    private func createdAt(_ id: TaskID, _ owner: String) -> Milliseconds? {
        let start = "\(identity)-\(id)-"
        guard owner.utf8.starts(with: start.utf8) else { return nil }
        let time = owner.utf8.dropFirst(start.utf8.count).prefix { $0 != UInt8(ascii: ".") }
        return Milliseconds(String(decoding: time, as: UTF8.self), radix: 36)
    }
}
