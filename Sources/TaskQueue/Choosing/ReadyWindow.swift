import TaskModel
import TaskStore

/// A window of the first ready tasks of each group, from which the next task is chosen. The type performs no I/O; the
/// scheduler reads what it lacks.
///
/// Owners take turns, regardless of their tasks. Among one owner's tasks the higher priority comes first, and batches
/// of equal priority take turns. An urgent task comes before all others, as far as its owner's limit of urgent tasks
/// allows. The owners of urgent tasks take turns too.
struct ReadyWindow {
    struct Choice: Equatable {
        var task: ReadyTask
        var group: FairShareGroup
    }

    private struct Queue {
        let group: FairShareGroup
        /// The tasks in queue order.
        var tasks: [ReadyTask] = []
        /// The hosts that the last read excluded; set only where that read returned all other tasks of the group.
        var exhaustedBut: Set<Int64>?
    }

    /// The maximum number of tasks kept per group. Further tasks are read when needed.
    static let tasksKept = 1_024

    private var queues: [Queue] = []

    /// Discards all groups and tasks.
    mutating func clear() { queues.removeAll(keepingCapacity: true) }

    /// The number of groups.
    var count: Int { queues.count }
    var owners: Set<UInt32> { Set(queues.lazy.map(\.group.owner)) }
    var groups: Set<FairShareGroup.Key> { Set(queues.lazy.map(\.group.key)) }

    /// Replaces the groups.
    ///
    /// - Parameter groups: the groups with ready tasks.
    mutating func set(_ groups: [FairShareGroup]) {
        queues = groups.map { Queue(group: $0) }
    }

    /// Returns the groups of which more must be read, because none of their tasks in the window may start.
    ///
    /// - Parameters:
    ///   - blocked: Returns the hosts of which no task of an owner may start.
    ///   - isUrgentOnly: Whether only urgent tasks may start. Urgent tasks are first in a group, so any non-empty window
    ///     of the group already contains them.
    func lacking(
        blocked: (_ owner: UInt32) -> Set<Int64>, isUrgentOnly: Bool, _ mayStart: (ReadyTask, FairShareGroup) -> Bool
    ) -> [FairShareGroup] {
        queues.filter { queue in
            if isUrgentOnly, !queue.tasks.isEmpty { return false }
            if queue.tasks.contains(where: { mayStart($0, queue.group) }) { return false }
            return !(queue.exhaustedBut.map { $0.isSubset(of: blocked(queue.group.owner)) } ?? false)
        }.map(\.group)
    }

    /// Returns the tasks of a group that are already in the window.
    func ids(of group: Int64) -> [TaskID] {
        queues.first { $0.group.id == group }?.tasks.map(\.id) ?? []
    }

    /// Returns the first tasks of each group.
    func upcoming(_ limit: Int) -> [TaskID] {
        let share = max(1, limit / max(1, queues.count))
        return queues.prefix(max(0, limit)).flatMap { $0.tasks.prefix(share).map(\.id) }
    }

    /// Adds the tasks read from a group.
    ///
    /// - Parameters:
    ///   - limit: the number of tasks that were requested.
    ///   - excludingHosts: the hosts that the query excluded.
    mutating func add(_ tasks: [ReadyTask], to group: Int64, limit: Int, excludingHosts: Set<Int64>) {
        guard let index = queues.firstIndex(where: { $0.group.id == group }) else { return }
        queues[index].exhaustedBut = tasks.count < limit ? excludingHosts : nil
        if queues[index].tasks.isEmpty {
            queues[index].tasks = tasks
        } else {
            queues[index].tasks = (queues[index].tasks + tasks).sorted()
        }
        if queues[index].tasks.count > Self.tasksKept {
            queues[index].tasks.removeLast(queues[index].tasks.count - Self.tasksKept)
            queues[index].exhaustedBut = nil
        }
    }

    /// Removes and returns the next task.
    ///
    /// - Parameter isUrgent: Returns whether a task comes before all tasks that are not urgent.
    mutating func removeNext(
        owners: FairShare<UInt32>, groups: FairShare<FairShareGroup.Key>, isUrgent: (ReadyTask, FairShareGroup) -> Bool,
        _ mayStart: (ReadyTask, FairShareGroup) -> Bool
    ) -> Choice? {
        // Each owner's next task is determined first: its priority does not count among owners.
        var firsts: [UInt32: Candidate] = [:]
        for (index, queue) in queues.enumerated() {
            guard let first = queue.tasks.firstIndex(where: { mayStart($0, queue.group) }) else { continue }
            let candidate = Candidate(queue: index, task: first)
            let other = firsts[queue.group.owner]
            if other.map({ precedes(candidate, $0, owners, groups) }) ?? true { firsts[queue.group.owner] = candidate }
        }
        var best: (candidate: Candidate, isUrgent: Bool)?
        for candidate in firsts.values {
            let queue = queues[candidate.queue]
            let urgent = isUrgent(queue.tasks[candidate.task], queue.group)
            if let best {
                guard
                    urgent == best.isUrgent ? precedes(candidate, best.candidate, owners, groups) : urgent
                else { continue }
            }
            best = (candidate, urgent)
        }
        guard let best else { return nil }
        let (queue, task) = (best.candidate.queue, best.candidate.task)
        return Choice(task: queues[queue].tasks.remove(at: task), group: queues[queue].group)
    }

    /// A task that may be next.
    private struct Candidate {
        var queue: Int
        var task: Int
    }

    private func precedes(
        _ one: Candidate, _ other: Candidate, _ owners: FairShare<UInt32>, _ groups: FairShare<FairShareGroup.Key>
    ) -> Bool {
        let (left, right) = (queues[one.queue], queues[other.queue])
        return StartOrder.precedes(
            (left.group, left.tasks[one.task]), (right.group, right.tasks[other.task]), owners, groups)
    }
}

extension FairShareGroup.Key {
    init(_ record: TaskRecord) {
        self.init(owner: record.owner, batch: record.specification.batch)
    }
}
