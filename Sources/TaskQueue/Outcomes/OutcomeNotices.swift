import TaskModel
import TaskStore

/// The memory of reported problems, so that one that concerns many tasks is logged once.
struct OutcomeNotices {
    /// The owners whose exhausted quota has been reported.
    private var ownersAtQuota: Set<UInt32> = []
    /// Whether a task waits for the network and none has completed since.
    private var isNetworkAway = false

    /// Records a conclusion.
    ///
    /// - Returns: Whether its error is to be reported: an unavailable network once until a task completes, a disk
    ///   problem once per task, and an exhausted quota once per owner.
    mutating func isNews(_ outcome: TaskConclusion, of record: TaskRecord) -> Bool {
        guard outcome.error != nil else { return false }
        return switch outcome.lifecycle.reason {
        case .network: networkIsAway()
        case .quota: ownersAtQuota.insert(record.owner).inserted
        case .disk, .diskFull: outcome.error != record.error
        default: true
        }
    }

    /// Records that a task waits for the network.
    ///
    /// - Returns: Whether that is to be reported.
    private mutating func networkIsAway() -> Bool {
        defer { isNetworkAway = true }
        return !isNetworkAway
    }

    mutating func taskCompleted() { isNetworkAway = false }

    /// Records that tasks of an owner fit into the quota again.
    ///
    /// - Parameter owner: the owner; `nil` for all.
    mutating func quotaHasRoom(of owner: UInt32?) {
        if let owner { ownersAtQuota.remove(owner) } else { ownersAtQuota = [] }
    }
}
