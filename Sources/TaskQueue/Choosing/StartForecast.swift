import TaskModel
import TaskStore

/// A forecast of the order in which ready tasks start. It applies the rules of ``ReadyWindow`` under the assumption
/// that running tasks end in the order in which they started, and that every host accepts connections. The type
/// performs no I/O; the driver reads what it lacks.
struct StartForecast: Sendable {
    enum Step: Equatable {
        /// The next task.
        case task(ReadyTask, FairShareGroup)
        /// The forecast cannot continue before ``add(_:to:)`` with the next tasks of this group.
        case read(FairShareGroup, after: ReadyTask?)
        /// The end: every group is empty.
        case end
    }

    private struct Queue {
        let group: FairShareGroup
        /// The next tasks in the order of start.
        var tasks: ArraySlice<ReadyTask> = []
        var last: ReadyTask?
        /// Whether the group has no tasks besides ``tasks``.
        var isExhausted = false
    }

    private var owners: FairShare<UInt32>
    private var groups: FairShare<FairShareGroup.Key>
    private var slots: SlotTable
    /// The places of the running tasks, the earliest start first.
    private var running: ArraySlice<TaskChooser.Place> = []
    private var queues: [Queue] = []
    private var queuesOfOwner: [UInt32: [Int]] = [:]
    /// The queue with each owner's next task; absent for an owner whose queues must be compared again.
    private var best: [UInt32: Int] = [:]
    /// The queues without a task in memory.
    private var lacking: [Int] = []

    /// - Parameter running: the places of the running tasks, the earliest start first.
    init(
        owners: FairShare<UInt32>, groups: FairShare<FairShareGroup.Key>, activeTasks: Int,
        activeTasksPerOwner: Int? = nil, running: [TaskChooser.Place]
    ) {
        self.owners = owners
        self.groups = groups
        slots = SlotTable(activeTasks: max(1, activeTasks), activeTasksPerOwner: activeTasksPerOwner.map { max(1, $0) })
        for place in running {
            self.running.append(place)
            slots.start(0, of: place.group.owner, beyond: place.isBeyond, isUrgent: place.isUrgent)
        }
    }

    /// Replaces the groups, whose tasks are all gone, by others.
    mutating func set(_ groups: [FairShareGroup]) {
        queues = groups.map { Queue(group: $0) }
        queuesOfOwner = Dictionary(grouping: queues.indices) { queues[$0].group.owner }
        lacking = queues.indices.reversed()
        best = [:]
    }

    /// Adds the tasks that follow in a group.
    ///
    /// - Parameter tasks: empty if no task follows.
    mutating func add(_ tasks: [ReadyTask], to group: FairShareGroup) {
        guard let position = lacking.lastIndex(where: { queues[$0].group.id == group.id }) else { return }
        let index = lacking.remove(at: position)
        queues[index].tasks = tasks[...]
        queues[index].last = tasks.last ?? queues[index].last
        queues[index].isExhausted = tasks.isEmpty
        best[group.owner] = nil
    }

    mutating func next() -> Step {
        if let index = lacking.last { return .read(queues[index].group, after: queues[index].last) }
        while true {
            if let index = choose() { return .task(start(index), queues[index].group) }
            guard let ended = running.popFirst() else { return .end }
            end(ended)
        }
    }

    // MARK: Choosing

    /// Returns the queue whose first task starts next; `nil` if none may start before a running task ends.
    private mutating func choose() -> Int? {
        let hasRoom = slots.hasRoom
        var chosen: (queue: Int, task: ReadyTask, isUrgent: Bool)?
        for owner in queuesOfOwner.keys where slots.hasRoom(for: owner) {
            guard let index = best[owner] ?? bestQueue(of: owner), let task = queues[index].tasks.first else {
                continue
            }
            best[owner] = index
            let isUrgent = task.priority == TaskPriority.now.rank && slots.mayBeUrgent(of: owner)
            guard hasRoom || (isUrgent && slots.hasRoomBeyond(of: owner)) else { continue }
            if let other = chosen {
                let precedes =
                    isUrgent == other.isUrgent
                    ? StartOrder.precedes(
                        (queues[index].group, task), (queues[other.queue].group, other.task), owners, groups)
                    : isUrgent
                guard precedes else { continue }
            }
            chosen = (index, task, isUrgent)
        }
        return chosen?.queue
    }

    private func bestQueue(of owner: UInt32) -> Int? {
        var chosen: (queue: Int, task: ReadyTask)?
        for index in queuesOfOwner[owner] ?? [] {
            guard let task = queues[index].tasks.first else { continue }
            if let other = chosen,
                !StartOrder.precedes(
                    (queues[index].group, task), (queues[other.queue].group, other.task), owners, groups)
            {
                continue
            }
            chosen = (index, task)
        }
        return chosen?.queue
    }

    // MARK: Places

    private mutating func start(_ index: Int) -> ReadyTask {
        let task = queues[index].tasks.removeFirst()
        let group = queues[index].group.key
        let isUrgent = task.priority == TaskPriority.now.rank && slots.mayBeUrgent(of: group.owner)
        let place = TaskChooser.Place(
            group: group, hostFingerprint: 0, isBeyond: !slots.hasRoom, isUrgent: isUrgent)
        slots.start(0, of: group.owner, beyond: place.isBeyond, isUrgent: isUrgent)
        owners.start(group.owner)
        groups.start(group)
        running.append(place)
        best[group.owner] = nil
        if queues[index].tasks.isEmpty, !queues[index].isExhausted { lacking.append(index) }
        return task
    }

    private mutating func end(_ place: TaskChooser.Place) {
        slots.end(
            0, of: place.group.owner, wasSilent: false, beyond: place.isBeyond, wasUrgent: place.isUrgent)
        owners.end(place.group.owner)
        groups.end(place.group)
        best[place.group.owner] = nil
    }
}
