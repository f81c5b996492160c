import TaskModel
import TaskStore

/// A window of the first ready tasks of each flow, from which the next task is chosen. The type performs no I/O; the
/// scheduler reads what it lacks.
///
/// Owners take turns, regardless of their tasks. Among one owner's tasks the higher priority comes first, and batches
/// of equal priority take turns. An urgent task comes before all others, as far as its owner's limit of urgent tasks
/// allows. The owners of urgent tasks take turns too.
struct ReadyWindow {
    /// A group of tasks with the same owner and batch.
    struct Group: Hashable {
        var owner: UInt32
        var batch: String?
    }

    struct Choice: Equatable {
        var task: ReadyTask
        var flow: Flow
    }

    private struct Queue {
        let flow: Flow
        /// The tasks in queue order.
        var tasks: [ReadyTask] = []
        /// The hosts that the last read excluded; set only where that read returned all other tasks of the flow.
        var exhaustedBut: Set<Int64>?
    }

    /// The maximum number of tasks kept per flow. Further tasks are read when needed.
    static let tasksKept = 1_024

    private var queues: [Queue] = []

    /// Discards all flows and tasks.
    mutating func clear() { queues.removeAll(keepingCapacity: true) }

    /// The number of flows.
    var count: Int { queues.count }
    var owners: Set<UInt32> { Set(queues.lazy.map(\.flow.owner)) }
    var groups: Set<Group> { Set(queues.lazy.map { Group($0.flow) }) }

    /// Replaces the flows.
    ///
    /// - Parameter flows: the flows with ready tasks.
    mutating func set(_ flows: [Flow]) {
        queues = flows.map { Queue(flow: $0) }
    }

    /// Returns the flows of which more must be read, because none of their tasks in the window may start.
    ///
    /// - Parameter isUrgentOnly: Whether only urgent tasks may start. Urgent tasks are first in a flow, so any
    ///   non-empty window of the flow already contains them.
    func lacking(closed: Set<Int64>, isUrgentOnly: Bool, _ mayStart: (ReadyTask, Flow) -> Bool) -> [Flow] {
        queues.filter { queue in
            if isUrgentOnly, !queue.tasks.isEmpty { return false }
            if let left = queue.exhaustedBut, left.isSubset(of: closed) { return false }
            return !queue.tasks.contains { mayStart($0, queue.flow) }
        }.map(\.flow)
    }

    /// Returns the tasks of a flow that are already in the window.
    func ids(of flow: Int64) -> [TaskID] {
        queues.first { $0.flow.id == flow }?.tasks.map(\.id) ?? []
    }

    /// Returns the first tasks of each flow.
    func upcoming(_ limit: Int) -> [TaskID] {
        let share = max(1, limit / max(1, queues.count))
        return queues.prefix(max(0, limit)).flatMap { $0.tasks.prefix(share).map(\.id) }
    }

    /// Adds the tasks read from a flow.
    ///
    /// - Parameters:
    ///   - limit: the number of tasks that were requested.
    ///   - excludingHosts: the hosts that the query excluded.
    mutating func add(_ tasks: [ReadyTask], to flow: Int64, limit: Int, excludingHosts: Set<Int64>) {
        guard let index = queues.firstIndex(where: { $0.flow.id == flow }) else { return }
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
    mutating func take(
        owners: FairShare<UInt32>, groups: FairShare<Group>, isUrgent: (ReadyTask, Flow) -> Bool,
        _ mayStart: (ReadyTask, Flow) -> Bool
    ) -> Choice? {
        var best: (queue: Int, task: Int, isUrgent: Bool)?
        for (index, queue) in queues.enumerated() {
            guard let first = queue.tasks.firstIndex(where: { mayStart($0, queue.flow) }) else { continue }
            let task = queue.tasks[first]
            let urgent = isUrgent(task, queue.flow)
            if let best {
                let other = queues[best.queue]
                guard
                    urgent == best.isUrgent
                        ? Self.precedes((queue.flow, task), (other.flow, other.tasks[best.task]), owners, groups)
                        : urgent
                else { continue }
            }
            best = (index, first, urgent)
        }
        guard let best else { return nil }
        return Choice(task: queues[best.queue].tasks.remove(at: best.task), flow: queues[best.queue].flow)
    }

    private static func precedes(
        _ one: (flow: Flow, task: ReadyTask), _ other: (flow: Flow, task: ReadyTask), _ owners: FairShare<UInt32>,
        _ groups: FairShare<Group>
    ) -> Bool {
        if one.flow.owner != other.flow.owner {
            let (left, right) = (owners.claim(of: one.flow.owner), owners.claim(of: other.flow.owner))
            if left != right { return left < right }
            // The owner whose task was added first comes first.
            return (one.task.position, one.task.id.rawValue) < (other.task.position, other.task.id.rawValue)
        }
        if one.task.priority != other.task.priority { return one.task.priority > other.task.priority }
        if one.flow.batch != other.flow.batch {
            let (left, right) = (groups.claim(of: Group(one.flow)), groups.claim(of: Group(other.flow)))
            if left != right { return left < right }
        }
        return one.task < other.task
    }
}

extension ReadyWindow.Group {
    init(_ flow: Flow) {
        self.init(owner: flow.owner, batch: flow.batch)
    }

    init(_ record: TaskRecord) {
        self.init(owner: record.owner, batch: record.specification.batch)
    }
}
