import TaskModel
import TaskStore
import Transfer

/// Says which part files of this store no task will go on with.
///
/// A part is kept wherever that is not certain. Queued, waiting, paused, failed and cancelled tasks go on with theirs; a
/// completed one never does, and neither does one that is gone.
///
/// The database may be an older copy that was put back, and then knows nothing of the tasks that the newer one had: their
/// parts stay, so that the newer one can be put back in turn. Their numbers are above the newest that this database gave;
/// and once it has given such a number itself, the part shows an earlier time than the life of the daemon in which that
/// was. The time is the task's, which stands on the part as ``PartFile`` marks it; without a mark, as on FAT, it is that of
/// the part's last change, which is no earlier.
struct PartJudge {
    /// The store's.
    let identity: String
    let lives: [StoreLife]

    /// Milliseconds that a file system may round a time down: FAT goes by two seconds.
    private static let rounding: Milliseconds = 2_000

    /// The number in the name of a part of this store; `nil` for every other name.
    static func id(in name: String, identity: String) -> TaskID? {
        let (beginning, ending) = affixes(identity)
        guard name.utf8.starts(with: beginning.utf8), name.utf8.count > beginning.utf8.count + ending.utf8.count else {
            return nil
        }
        let digits = String(
            decoding: name.utf8.dropFirst(beginning.utf8.count).dropLast(ending.utf8.count), as: UTF8.self)
        // As it is written: no sign, no leading zero.
        guard let number = Int64(digits), number > 0,
            RequestMaker.partName(TaskID(number), identity: identity) == name
        else { return nil }
        return TaskID(number)
    }

    /// What the names of this store's parts begin and end with.
    static func affixes(_ identity: String) -> (beginning: String, ending: String) { (".dld-\(identity)-", ".part") }

    /// - Parameters:
    ///   - task: the one that has the number now; `nil`: none.
    ///   - newest: the greatest number that this database gave.
    ///   - traces: the part's.
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
        // The life that gave the number; before the first that is known, no copy was put back since.
        guard let life = lives.last(where: { $0.newest < id }) else { return true }
        return begun >= life.since
    }

    /// When the task that `owner` names was added; `nil` where it is not the one of this number.
    private func createdAt(_ id: TaskID, _ owner: String) -> Milliseconds? {
        let start = "\(identity)-\(id)-"
        guard owner.utf8.starts(with: start.utf8) else { return nil }
        return Milliseconds(String(decoding: owner.utf8.dropFirst(start.utf8.count), as: UTF8.self), radix: 36)
    }
}
