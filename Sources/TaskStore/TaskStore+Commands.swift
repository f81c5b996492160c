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
    ///   - ids: at most ``rowsInCommit``, so that no commit is long.
    ///   - owner: only this user's tasks are known; `nil`: everyone's.
    package func apply(
        _ event: TaskStanding.Event, to ids: [TaskID], owner: UInt32?, now: Milliseconds
    ) async throws(StoreError) -> CommandOutcome {
        try await writes.perform(weight: ids.count) { database in
            var outcome = CommandOutcome()
            for id in ids {
                guard let head = try database.head(of: id, owner: owner) else {
                    outcome.unknown.append(id)
                    continue
                }
                do throws(IllegalTransition) {
                    var standing = head.standing
                    guard try standing.apply(event) else { continue }
                } catch {
                    outcome.refused.append((id, error))
                    continue
                }
                try database.apply(event, to: head, now: now)
                outcome.changed.append(id)
            }
            return outcome
        }
    }

    /// Deletes the tasks with their secrets, piece hashes and resume data, with an event each.
    ///
    /// - Parameter keepsEntries: a queue file that is applied again finds what it names of them completed.
    /// - Returns: the records as they were; an id without a task that the caller may see is passed over.
    package func remove(
        _ ids: [TaskID], owner: UInt32?, keepsEntries: Bool = false, now: Milliseconds
    ) async throws(StoreError) -> [TaskRecord] {
        try await writes.perform(weight: ids.count) { database in
            var removed: [TaskRecord] = []
            for id in ids {
                guard let record = try database.record(id, owner: owner) else { continue }
                if keepsEntries { try database.keepEntry(ofCompleted: id) }
                try database.run("DELETE FROM task WHERE id = ?", [id.rawValue])
                let head = TaskHead(id: id, owner: record.owner, standing: record.standing)
                try database.journal(.removed, of: head, at: now)
                removed.append(record)
            }
            try Self.notePlaces(of: removed, in: database)
            return removed
        }
    }
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

    func record(_ id: TaskID, owner: UInt32?) throws -> TaskRecord? {
        let record = try firstRow(
            "SELECT \(TaskRecord.columns) FROM \(FlowSQL.tasks) WHERE task.id = ?", [id.rawValue], TaskRecord.init)
        return owner == nil || record?.owner == owner ? record : nil
    }
}
