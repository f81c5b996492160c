import GRDB
import TaskModel

/// What a command did to the tasks it named; those that were so already are in none of the lists.
package struct CommandOutcome: Sendable {
    package var changed: [TaskID] = []
    package var refused: [(TaskID, IllegalTransition)] = []
    /// No task has the id, or none that the caller may see.
    package var unknown: [TaskID] = []
}

extension TaskStore {
    /// Applies a person's command (`pause`, `resume`, `cancel` or `retry`) to each of `ids`, with an event for
    /// each that changed. A running task counts as the ready one it is stored as.
    ///
    /// A `retry` of an upload, and the `resume` of one whose source changed, take the source as it is then.
    ///
    /// `cancel` sets the time of the end; `retry` clears that, the error and the count of failures, and keeps the
    /// bytes.
    ///
    /// - Parameters:
    ///   - ids: of as many tasks as there are; where a commit fails, those before it stay.
    ///   - owner: only this user's tasks are known; `nil`: everyone's.
    package func apply(
        _ event: TaskStanding.Event, to ids: [TaskID], owner: UInt32?, now: Milliseconds
    ) async throws(StoreError) -> CommandOutcome {
        try await inParts(ids, CommandOutcome()) { database, id, outcome in
            guard let head = try database.head(of: id, owner: owner) else {
                outcome.unknown.append(id)
                return 0
            }
            do throws(IllegalTransition) {
                var standing = head.standing
                guard try standing.apply(event) else { return 0 }
            } catch {
                outcome.refused.append((id, error))
                return 0
            }
            try database.apply(event, to: head, now: now)
            outcome.changed.append(id)
            return 0
        }
    }

    /// Deletes the tasks with their secrets, piece hashes and resume data, with an event each.
    ///
    /// - Parameters:
    ///   - ids: of as many tasks as there are; where a commit fails, those before it are gone.
    ///   - keepsEntries: a queue file that is applied again finds what it names of them completed.
    /// - Returns: what is to be known of those that are gone; an id without a task that the caller may see is passed over.
    package func remove(
        _ ids: [TaskID], owner: UInt32?, keepsEntries: Bool = false, quota: Quota = Quota(), now: Milliseconds
    ) async throws(StoreError) -> RemovedTasks {
        typealias Removal = (tasks: RemovedTasks, places: Set<PartPlace>)
        let noted: @Sendable (Database, inout Removal) throws -> Void = { database, removal in
            try Self.note(removal.places, in: database)
            removal.tasks.places.formUnion(removal.places)
            removal.places = []
        }
        return try await inParts(ids, Removal(RemovedTasks(), []), finish: noted) { database, id, removal in
            guard let task = try database.removable(id, owner: owner) else { return 0 }
            if keepsEntries {
                try database.keepEntry(ofCompleted: id, owner: task.head.owner, records: quota.recordsPerOwner)
            }
            try database.run("DELETE FROM task WHERE id = ?", [id.rawValue])
            try database.journal(.removed, of: task.head, at: now)
            removal.tasks.ids.append(id)
            if let place = task.place { removal.places.insert(place) }
            if task.hasBytes { removal.tasks.ownersOfBytes.insert(task.head.owner) }
            return 0
        }.tasks
    }
}

/// The facts that are kept of tasks that were removed.
package struct RemovedTasks: Sendable, Equatable {
    package var ids: [TaskID] = []
    /// The places where the downloads among them had their parts.
    package var places: Set<PartPlace> = []
    /// The owners of those that had fetched something.
    package var ownersOfBytes: Set<UInt32> = []
}

extension Database {
    /// - Throws: also ``IllegalTransition``.
    func apply(_ event: TaskStanding.Event, to head: TaskHead, now: Milliseconds) throws {
        var head = head
        let before = head.standing
        guard try head.standing.apply(event) else { return }
        if event == .retry || before.reason == .sourceChanged { try forgetSource(of: head.id) }
        if let standing = try follow(head.id, event, from: before) { head.standing = standing }
        try setStanding(of: head.id, to: head.standing)
        let type: TaskEvent.Kind
        switch event {
        case .pause: type = .paused
        case .resume: type = .resumed
        case .cancel:
            type = .cancelled
            try run("UPDATE task SET finished_at = ? WHERE id = ?", [now, head.id.rawValue])
        case .retry:
            type = .retried
            try run(
                """
                UPDATE task SET failures = 0, finished_at = NULL, error_code = NULL, error_message = NULL,
                    http_status = NULL
                WHERE id = ?
                """, [head.id.rawValue])
        default: return
        }
        try journal(type, of: head, at: now)
    }

    /// The source of an upload may be another file from now on than the one that was first sent.
    func forgetSource(of id: TaskID) throws {
        try run(
            "DELETE FROM task_resume WHERE task_id = ? AND (SELECT kind FROM task WHERE id = task_id) = 'upload'",
            [id.rawValue])
    }

    /// - Returns: the task without its texts, of which there may be much.
    fileprivate func removable(
        _ id: TaskID, owner: UInt32?
    ) throws -> (head: TaskHead, place: PartPlace?, hasBytes: Bool)? {
        let task = try firstRow(
            "SELECT \(TaskHead.columns), kind, directory, bytes_done FROM \(FlowSQL.tasks) WHERE task.id = ?",
            [id.rawValue]
        ) { row in
            let (head, kind) = (try TaskHead(row), try row.word(5) as TaskKind)
            let place = PartPlace(directory: try row.textOrNil(6), owner: head.owner)
            return (head: head, place: kind == .download ? place : nil, hasBytes: try row.integer(7) > 0)
        }
        return owner == nil || task?.head.owner == owner ? task : nil
    }

    func record(_ id: TaskID, owner: UInt32?) throws -> TaskRecord? {
        let record = try firstRow(
            "SELECT \(TaskRecord.columns) FROM \(FlowSQL.tasks) WHERE task.id = ?", [id.rawValue], TaskRecord.init)
        return owner == nil || record?.owner == owner ? record : nil
    }
}
