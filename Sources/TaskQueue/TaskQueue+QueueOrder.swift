package import TaskModel
import TaskStore

/// The ready tasks in the order in which they will start.
extension TaskQueue {
    /// Returns a reader of the ready tasks that the caller may see, in the order in which they will start.
    ///
    /// - Parameter filter: selects the tasks by owner and batch.
    package func queueOrder(_ filter: TaskFilter, for caller: Caller) async -> QueueOrderReader {
        let (forecast, running) = await onSharedThreads { await scheduler.forecast() }
        return QueueOrderReader(forecast, running: running, filter: filter, owner: caller.scope, store: store)
    }

    /// Returns the statuses of those of `ids` that are ready, do not run and match the filter, in the order of `ids`.
    package func readyStatuses(
        of ids: [TaskID], matching filter: TaskFilter, for caller: Caller
    ) async throws(QueueError) -> [TaskStatus] {
        let records = try stored { () throws(StoreError) in
            try store.readyRecords(of: ids, matching: filter, owner: caller.scope)
        }
        let statuses = await onSharedThreads { await scheduler.statuses(of: records) }
        let byID = Dictionary(statuses.map { ($0.id, $0) }) { first, _ in first }
        return ids.compactMap { id in byID[id].flatMap { $0.state == .queued ? $0 : nil } }
    }

    /// Whether the caller may see tasks of more than one owner, and there are some.
    package func hasSeveralOwners(for caller: Caller) throws(QueueError) -> Bool {
        guard caller.scope == nil else { return false }
        return try stored { () throws(StoreError) in try store.hasSeveralOwners() }
    }
}

/// A reader of the ready tasks in the order in which they will start.
package struct QueueOrderReader {
    /// The maximum number of tasks returned.
    package static let limit = 10_000
    /// The maximum number of tasks examined, including those that the filter does not select.
    private static let examinationLimit = 100_000
    /// The number of tasks that are read at a time of all groups together, and the limits for a single group.
    private static let tasksTogether = 16_384
    private static let tasksOfGroup = 8...512

    private var forecast: StartForecast
    private let running: Set<TaskID>
    private let filter: TaskFilter
    private let owner: UInt32?
    private let store: TaskStore
    private var groups: GroupCursor
    private var seen: Set<TaskID> = []
    private var returned = 0
    /// The number of tasks of a group that are read at a time.
    private var limitOfGroup = Self.tasksOfGroup.upperBound

    init(_ forecast: StartForecast, running: Set<TaskID>, filter: TaskFilter, owner: UInt32?, store: TaskStore) {
        self.forecast = forecast
        self.running = running
        self.filter = filter
        self.owner = owner
        self.store = store
        groups = GroupCursor(store: store)
    }

    /// Returns the next tasks.
    ///
    /// - Returns: at most `count` tasks; empty at the end.
    package mutating func next(_ count: Int) throws(QueueError) -> [TaskID] {
        do throws(StoreError) { return try read(min(count, Self.limit - returned)) } catch { throw QueueError(error) }
    }

    private mutating func read(_ count: Int) throws(StoreError) -> [TaskID] {
        var tasks: [TaskID] = []
        reading: while tasks.count < count, seen.count < Self.examinationLimit {
            switch forecast.next() {
            case .task(let task, let group):
                guard seen.insert(task.id).inserted, isSelected(group) else { continue }
                tasks.append(task.id)
            case .read(let group, let last):
                // Running tasks are stored as ready.
                var after = last
                var found: [ReadyTask]
                repeat {
                    found = try store.readyTasks(of: group.id, after: after, limit: limitOfGroup)
                    after = found.last
                    found.removeAll { running.contains($0.id) }
                } while found.isEmpty && after != nil
                forecast.add(found, to: group)
            case .end:
                let next = try groups.next()
                if next.isEmpty { break reading }
                limitOfGroup = min(
                    Self.tasksOfGroup.upperBound, max(Self.tasksOfGroup.lowerBound, Self.tasksTogether / next.count))
                forecast.set(next)
            }
        }
        returned += tasks.count
        return tasks
    }

    private func isSelected(_ group: FairShareGroup) -> Bool {
        (owner == nil || owner == group.owner) && (filter.owner == nil || filter.owner == group.owner)
            && (filter.batch == nil || filter.batch == group.batch)
    }
}

/// A reader of the groups with ready tasks, as many at a time as the scheduler considers together.
private struct GroupCursor {
    let store: TaskStore
    /// The owners considered at present, each with the last group read.
    private var owners: [(owner: UInt32, last: Int64)] = []
    private var lastOwner: UInt32?

    init(store: TaskStore) { self.store = store }

    /// Returns the next groups; empty at the end.
    mutating func next() throws(StoreError) -> [FairShareGroup] {
        while true {
            var found: [FairShareGroup] = []
            var remaining: [(owner: UInt32, last: Int64)] = []
            for (owner, last) in owners {
                let groups = try store.readyGroups(of: owner, after: last, limit: TaskChooser.groupsTogether)
                found += groups
                if let last = groups.last, groups.count == TaskChooser.groupsTogether {
                    remaining.append((owner, last.id))
                }
            }
            owners = remaining
            if !found.isEmpty { return found }
            let next = try store.readyOwners(after: lastOwner, limit: TaskChooser.ownersTogether)
            guard let last = next.last else { return [] }
            lastOwner = last
            owners = next.map { ($0, 0) }
        }
    }
}
