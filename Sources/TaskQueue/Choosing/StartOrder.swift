import TaskModel
import TaskStore

/// The order between the first tasks of two groups.
enum StartOrder {
    /// Returns whether the first task starts before the second, if both may start and are equally urgent.
    static func precedes(
        _ one: (group: FairShareGroup, task: ReadyTask), _ other: (group: FairShareGroup, task: ReadyTask),
        _ owners: FairShare<UInt32>, _ groups: FairShare<FairShareGroup.Key>
    ) -> Bool {
        if one.group.owner != other.group.owner {
            let (left, right) = (owners.claim(of: one.group.owner), owners.claim(of: other.group.owner))
            if left != right { return left < right }
            // The owner whose task was added first comes first.
            return (one.task.position, one.task.id.rawValue) < (other.task.position, other.task.id.rawValue)
        }
        if one.task.priority != other.task.priority { return one.task.priority > other.task.priority }
        if one.group.batch != other.group.batch {
            let (left, right) = (groups.claim(of: one.group.key), groups.claim(of: other.group.key))
            if left != right { return left < right }
        }
        return one.task < other.task
    }
}
