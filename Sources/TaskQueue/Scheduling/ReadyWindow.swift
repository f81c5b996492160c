import TaskModel
import TaskStore

/// The first ready tasks of each flow, and which of them is next. A value without I/O: the scheduler reads what it lacks.
///
/// Owners come in turns, whatever their tasks are; of one owner the higher priority goes first, and batches of the same
/// priority come in turns. An urgent task, as far as its owner may have one more, goes before all that are not, and the
/// owners of urgent ones come in turns too.
struct ReadyWindow {
    /// The group that a task of an owner belongs to.
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
        /// In order.
        var tasks: [ReadyTask] = []
        /// Hosts that the last reading left out, where it found no more than it brought.
        var exhaustedBut: Set<Int64>?
    }

    /// Tasks that are kept of one flow; more are read again when their turn comes.
    static let tasksKept = 1_024

    private var queues: [Queue] = []

    /// Nothing is known any more.
    mutating func clear() { queues.removeAll(keepingCapacity: true) }

    /// The flows.
    var count: Int { queues.count }
    var owners: Set<UInt32> { Set(queues.lazy.map(\.flow.owner)) }
    var groups: Set<Group> { Set(queues.lazy.map { Group($0.flow) }) }

    /// - Parameter flows: those that have something to start.
    mutating func set(_ flows: [Flow]) {
        queues = flows.map { Queue(flow: $0) }
    }

    /// The flows to read more of, since none of their tasks here may start.
    ///
    /// - Parameter isUrgentOnly: what is not urgent may not start anyhow. The urgent come first in a flow, and whoever
    ///   read anything of it has those.
    func lacking(closed: Set<Int64>, isUrgentOnly: Bool, _ mayStart: (ReadyTask, Flow) -> Bool) -> [Flow] {
        queues.filter { queue in
            if isUrgentOnly, !queue.tasks.isEmpty { return false }
            if let left = queue.exhaustedBut, left.isSubset(of: closed) { return false }
            return !queue.tasks.contains { mayStart($0, queue.flow) }
        }.map(\.flow)
    }

    /// The tasks of a flow that need not be read.
    func ids(of flow: Int64) -> [TaskID] {
        queues.first { $0.flow.id == flow }?.tasks.map(\.id) ?? []
    }

    /// The tasks that stand first in their flows.
    func upcoming(_ limit: Int) -> [TaskID] {
        let share = max(1, limit / max(1, queues.count))
        return queues.prefix(max(0, limit)).flatMap { $0.tasks.prefix(share).map(\.id) }
    }

    /// Takes in what was read of a flow.
    ///
    /// - Parameters:
    ///   - limit: as many were asked for.
    ///   - excludingHosts: those that were left out.
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

    /// Takes out the task that is next.
    ///
    /// - Parameter isUrgent: whether a task may go before those that are not urgent.
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
            // Who asked first.
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
