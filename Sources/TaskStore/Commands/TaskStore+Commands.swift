import GRDB
package import TaskModel

/// The result of a command for the tasks it named; tasks that already were in the requested state are in none of the
/// lists.
package struct CommandOutcome: Sendable {
    package var changed: [TaskID] = []
    package var refused: [(TaskID, IllegalTransition)] = []
    /// The ids without a task that the caller may see.
    package var unknown: [TaskID] = []
    /// The tasks that a resumption starts as soon as there is room, as far as they did not run.
    package var hastened: [TaskID] = []
}

extension TaskStore {
    /// Applies a user's command (`pause`, `resume`, `resumeNow`, `cancel` or `retry`) to each of `ids` and records an
    /// event for each changed task. A running task is treated as ready, which is its stored state.
    ///
    /// A `retry` of an upload, and the `resume` of an upload whose source changed, use the source in its current state.
    ///
    /// `cancel` sets the end time. `retry` clears the end time, the error and the count of failures, and keeps the
    /// bytes; a completed task starts afresh. One whose URL had secrets, which its completion has deleted, needs a URL.
    ///
    /// - Parameters:
    ///   - ids: any number of tasks; if a commit fails, the changes of previous commits remain.
    ///   - owner: the user whose tasks can be changed; `nil` for all users.
    ///   - width: the width of the selection, for `pause` and `resume`.
    ///   - stopped: the tasks that were running and that this command has paused already.
    package func apply(
        _ event: TaskLifecycle.Event, to ids: [TaskID], owner: UInt32?, width: TaskPauses = .single,
        stopped: Set<TaskID> = [], now: Milliseconds
    ) async throws(StoreError) -> CommandOutcome {
        try await inParts(ids, CommandOutcome()) { database, id, outcome in
            guard let head = try database.head(of: id, owner: owner) else {
                outcome.unknown.append(id)
                return 0
            }
            var lifecycle = head.lifecycle
            let isChange: Bool
            do throws(IllegalTransition) {
                isChange = try lifecycle.apply(event)
            } catch {
                outcome.refused.append((id, error))
                return 0
            }
            if event == .pause { try database.addPause(width, to: head, wasRunning: stopped.contains(id)) }
            if event == .resume, head.lifecycle.reason == .user {
                let left = try database.pauses(of: head).left(byResuming: width)
                try database.setPauses(of: id, to: left)
                if !left.isEmpty {
                    if try database.returnToNeed(left, head, now: now) { outcome.changed.append(id) }
                    return 0
                }
            }
            if lifecycle.state == .queued, event == .resumeNow || (event == .resume && head.lifecycle.state != .paused)
            {
                outcome.hastened.append(id)
            }
            guard isChange else { return 0 }
            try database.apply(event, to: head, now: now)
            outcome.changed.append(id)
            return 0
        }
    }

    /// Removes the tasks with their secrets, piece digests and resume data, and records an event for each.
    ///
    /// - Parameters:
    ///   - ids: any number of tasks; if a commit fails, the removals of previous commits remain.
    ///   - keepsEntries: whether to remember completed tasks, so that applying their queue file again treats their
    ///     entries as completed.
    /// - Returns: facts about the removed tasks; ids without a task that the caller may see are ignored.
    package func remove(
        _ ids: [TaskID], owner: UInt32?, keepsEntries: Bool = false, quota: Quota = Quota(), now: Milliseconds
    ) async throws(StoreError) -> RemovedTasks {
        // A batch ends with the last removal of a commit, not between two of them.
        typealias Removal = (tasks: RemovedTasks, places: Set<PartPlace>, batches: Set<OwnedBatch>)
        let recordPlaces: @Sendable (Database, inout Removal) throws -> Void = { database, removal in
            try Self.record(removal.places, in: database)
            removal.tasks.places.formUnion(removal.places)
            removal.places = []
            for batch in removal.batches.sorted(by: { ($0.owner, $0.name) < ($1.owner, $1.name) }) {
                try database.journalEnd(of: batch, at: now)
            }
            removal.batches = []
        }
        // What keeps a batch open goes last, so that the batch does not end with tasks of which a later commit removes
        // more.
        let ended = try read { database in
            try Set(ids.filter { try database.head(of: $0, owner: owner)?.lifecycle.state.isEnded == true })
        }
        let ordered = ids.filter(ended.contains) + ids.filter { !ended.contains($0) }
        return try await inParts(ordered, Removal(RemovedTasks(), [], []), finish: recordPlaces) {
            database, id, removal in
            guard let task = try database.removable(id, owner: owner) else { return 0 }
            if keepsEntries {
                try database.keepEntry(ofCompleted: id, owner: task.head.owner, records: quota.recordsPerOwner)
            }
            if let batch = try database.removeTask(task.head, at: now) { removal.batches.insert(batch) }
            removal.tasks.ids.append(id)
            if let place = task.place { removal.places.insert(place) }
            if task.hasBytes { removal.tasks.ownersOfBytes.insert(task.head.owner) }
            return 0
        }.tasks
    }
}

/// The facts about removed tasks.
package struct RemovedTasks: Sendable, Equatable {
    package var ids: [TaskID] = []
    /// The directories of the part files of the removed downloads.
    package var places: Set<PartPlace> = []
    /// The owners of removed tasks that had received bytes.
    package var ownersOfBytes: Set<UInt32> = []
}

extension Database {
    /// Applies a command to one task.
    ///
    /// - Throws: also ``IllegalTransition``.
    func apply(_ event: TaskLifecycle.Event, to head: TaskHead, now: Milliseconds) throws {
        var head = head
        let before = head.lifecycle
        guard try head.lifecycle.apply(event) else { return }
        if event == .retry || before.reason == .sourceChanged { try forgetSource(of: head.id) }
        if let lifecycle = try wait(of: head.id, after: event, now: now) { head.lifecycle = lifecycle }
        if before.state == .completed, try hadSecretURL(head.id),
            let lifecycle = TaskLifecycle(state: .paused, reason: .urlExpired, notBefore: nil)
        {
            head.lifecycle = lifecycle
        }
        try setLifecycle(of: head.id, to: head.lifecycle)
        let type: TaskEvent.Kind
        switch event {
        case .pause: type = .paused
        case .resume, .resumeNow: type = .resumed
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
            if before.state == .completed { try beginRound(of: head.id) }
        case .recheck:
            type = .retried
            // The counts are those of this transfer.
            try run(
                """
                UPDATE task SET bytes_done = 0, bytes_total = NULL, bytes_fetched = 0, attempts = 0, failures = 0,
                    verified = 0, started_at = NULL, finished_at = NULL
                WHERE id = ?
                """, [head.id.rawValue])
        default: return
        }
        try journal(type, of: head, at: now)
    }

    /// Forgets what a completed task has fetched.
    private func beginRound(of id: TaskID) throws {
        try run(
            "UPDATE task SET round = round + 1, started_at = NULL, verified = 0, found_checksum = NULL WHERE id = ?",
            [id.rawValue])
        try forgetBytes(of: id)
    }

    private func hadSecretURL(_ id: TaskID) throws -> Bool {
        try firstRow("SELECT 1 FROM task WHERE id = ? AND url_fingerprint IS NOT NULL", [id.rawValue]) { _ in true }
            ?? false
    }

    /// Returns the pauses of a task that a user has paused.
    fileprivate func pauses(of head: TaskHead) throws -> TaskPauses {
        let pauses = try firstRow("SELECT pauses FROM task WHERE id = ?", [head.id.rawValue]) {
            TaskPauses(rawValue: try $0.int(0))
        }
        return pauses.flatMap { $0.isEmpty ? nil : $0 } ?? .single
    }

    fileprivate func setPauses(of id: TaskID, to pauses: TaskPauses) throws {
        try run("UPDATE task SET pauses = ?2 WHERE id = ?1 AND pauses <> ?2", [id.rawValue, pauses.rawValue])
    }

    /// Adds a pause to those of a task.
    ///
    /// - Parameter wasRunning: Whether the task ran until it was paused.
    fileprivate func addPause(_ width: TaskPauses, to head: TaskHead, wasRunning: Bool) throws {
        let isPaused = head.lifecycle.reason == .user && !wasRunning
        let before = isPaused ? try pauses(of: head) : TaskPauses(need: head.lifecycle.reason)
        try setPauses(of: head.id, to: before.union(width))
    }

    /// Returns a task to what it needed from a person, where it has no other pause left.
    ///
    /// - Returns: whether the task was changed.
    fileprivate func returnToNeed(_ left: TaskPauses, _ head: TaskHead, now: Milliseconds) throws -> Bool {
        guard left.subtracting(TaskPauses(need: left.need)).isEmpty,
            let lifecycle = TaskLifecycle(state: .paused, reason: left.need, notBefore: nil)
        else { return false }
        try setLifecycle(of: head.id, to: lifecycle)
        try journal(.paused, of: TaskHead(id: head.id, owner: head.owner, lifecycle: lifecycle), at: now)
        return true
    }

    /// Removes the record of an upload's source, because the source may be a different file from now on.
    func forgetSource(of id: TaskID) throws {
        try run(
            "DELETE FROM task_resume WHERE task_id = ? AND (SELECT kind FROM task WHERE id = task_id) = 'upload'",
            [id.rawValue])
    }

    /// Returns a task's head, part directory and whether it has bytes, without reading its long texts.
    fileprivate func removable(
        _ id: TaskID, owner: UInt32?
    ) throws -> (head: TaskHead, place: PartPlace?, hasBytes: Bool)? {
        let task = try firstRow(
            "SELECT \(TaskHead.columns), kind, directory, bytes_done FROM \(GroupSQL.tasks) WHERE task.id = ?",
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
            "SELECT \(TaskRecord.columns) FROM \(GroupSQL.tasks) WHERE task.id = ?", [id.rawValue], TaskRecord.init)
        return owner == nil || record?.owner == owner ? record : nil
    }
}
