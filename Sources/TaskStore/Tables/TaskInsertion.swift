import GRDB
import TaskModel

/// A task that is about to be inserted.
struct FreshTask {
    var entry: StoredEntry
    var path: String?
    var lifecycle: TaskLifecycle
    /// The secrets as JSON.
    var secrets: String?
    var pieceHashes: PieceHashes?
    /// The task that this task depends on.
    var afterTask: TaskID?

    /// Creates the row of a new task.
    ///
    /// - Parameter identity: the store's identity.
    init(_ task: borrowing NewTask, identity: String, rests: inout StoredEntry.Rests) throws(StoreError) {
        entry = try StoredEntry(task, identity: identity, rests: &rests)
        path = task.path
        lifecycle = task.lifecycle
        secrets = try StoredJSON.encode(secrets: task.secrets)
        pieceHashes = task.specification.pieceHashes
        afterTask = task.specification.afterTask
    }

    init(entry: StoredEntry, path: String?, lifecycle: TaskLifecycle, secrets: String?) throws(StoreError) {
        self.entry = entry
        self.path = path
        self.lifecycle = lifecycle
        self.secrets = secrets
        // The specification is decoded only if it contains a dependency, because few tasks have one.
        if entry.specification?.hasBytes(of: "\"afterTask\"") == true { afterTask = try entry.decoded().afterTask }
    }
}

/// Tasks encoded for insertion.
package struct PreparedTasks: Sendable {
    var tasks: [FreshTask] = []
}

/// The position of a task in the order of its group.
enum QueuePosition {
    /// The exponent of the gap between neighbours: a new task's position is its id times 2 to this power.
    static let shift: Int64 = 20

    /// Returns the position of a new task, behind all existing ones.
    static func ofNew(_ id: Int64) -> Int64 { id << shift }
}

/// A range of consecutive tasks with the same state and reason.
struct TaskRange {
    var ids: ClosedRange<Int64>
    var state: TaskState
    var reason: TaskReason?
}

extension Database {
    private static let insertion = """
        INSERT INTO task (id, position, group_id, owner, created_at, path, state, reason, not_before,
            \(StoredEntry.columns)) VALUES
        """

    /// Inserts tasks with consecutive ids, without events. The tasks' keys, if any, must not be in use.
    ///
    /// - Parameter stagedBatch: the staged batch that the tasks belong to, which makes them hidden.
    /// - Returns: the inserted ranges, in order; empty if `tasks` is empty.
    func insert(
        _ tasks: ArraySlice<FreshTask>, owner: UInt32, stagedBatch: Int64? = nil, now: Milliseconds
    ) throws -> [TaskRange] {
        guard !tasks.isEmpty else { return [] }
        let first = try newestNumber(in: "task") + 1
        var groups: [String?: Int64] = [:]
        var group: Int64 = 0
        // Tasks that have not yet been added to their group's count.
        var tally: (group: Int64, state: TaskState, count: Int)?
        var ranges: [TaskRange] = []
        var bytes: Int64 = 0
        try insert(tasks.indices, Self.insertion, columns: 19) { index, row in
            let id = first + Int64(index - tasks.startIndex)
            // Consecutive tasks mostly belong to the same batch.
            if index == tasks.startIndex || tasks[index].entry.batch != tasks[index - 1].entry.batch {
                let batch = tasks[index].entry.batch
                group = try groups[batch] ?? self.group(owner: owner, batch: batch, stagedBatch: stagedBatch)
                groups[batch] = group
            }
            let lifecycle = tasks[index].lifecycle
            if let last = ranges.last, last.state == lifecycle.state, last.reason == lifecycle.reason {
                ranges[ranges.count - 1].ids = last.ids.lowerBound...id
            } else {
                ranges.append(TaskRange(ids: id...id, state: lifecycle.state, reason: lifecycle.reason))
            }
            if lifecycle.state != tally?.state || group != tally?.group {
                if let tally { try count(tally.count, tally.state, into: tally.group) }
                tally = (group, lifecycle.state, 0)
            }
            tally?.count += 1
            bytes = bytes.addingClamped(tasks[index].rowBytes)
            row.bind(id)
            row.bind(QueuePosition.ofNew(id))
            row.bind(group)
            row.bind(Int64(owner))
            row.bind(now)
            row.bind(tasks[index].path)
            row.bind(lifecycle)
            row.bind(tasks[index].entry)
        }
        if let tally { try count(tally.count, tally.state, into: tally.group) }
        try addRecordBytes(bytes, of: owner)
        for (index, task) in tasks.enumerated() {
            let id = TaskID(first + Int64(index))
            if let secrets = task.secrets { try setSecrets(of: id, to: secrets) }
            if let hashes = task.pieceHashes { try setPieceHashes(of: id, to: hashes) }
            if let afterTask = task.afterTask { try setUncheckedDependency(of: id, after: afterTask) }
        }
        return ranges
    }

    /// Adds tasks with an event each, except those whose owner already has a task with the same key.
    func add(_ tasks: [NewTask], identity: String, now: Milliseconds) throws -> [AddOutcome] {
        var outcomes: [AddOutcome] = []
        outcomes.reserveCapacity(tasks.count)
        var rests = StoredEntry.Rests()
        // Consecutive tasks of one owner without a key are inserted together.
        var fresh: [FreshTask] = []
        var owner: UInt32 = 0
        func flush() throws {
            for range in try insert(fresh[...], owner: owner, now: now) {
                try journalAdded(range, owner: owner, at: now)
                outcomes += range.ids.map { .added(TaskID($0)) }
            }
            fresh.removeAll(keepingCapacity: true)
        }
        for task in tasks {
            if task.owner != owner || task.specification.key != nil { try flush() }
            owner = task.owner
            if let key = task.specification.key, let id = try taskID(owner: owner, key: key) {
                outcomes.append(.existing(id))
                continue
            }
            fresh.append(try FreshTask(task, identity: identity, rests: &rests))
            if task.specification.key != nil { try flush() }
        }
        try flush()
        return outcomes
    }

    func taskID(owner: UInt32, key: String) throws -> TaskID? {
        try firstRow("SELECT id FROM task WHERE owner = ? AND key = ?", [owner, key]) { try $0.id(0) }
    }
}
