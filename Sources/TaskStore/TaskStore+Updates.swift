import GRDB
import TaskModel

/// What became of a change to what a task asks for.
package enum UpdateOutcome: Sendable, Equatable {
    case updated
    /// It asked for that already, and stands where that leads.
    case unchanged
    /// No task has the id, or none that the caller may see.
    case unknown
    /// It is completed or cancelled.
    case refused(IllegalTransition)
    case wrong(FieldError)
}

extension TaskStore {
    /// Judges what is asked for as a whole, its secrets with it, and takes them out; its path is what the task's
    /// becomes, `nil` leaving that as it is. It is also given what was asked for before.
    package typealias Judge =
        @Sendable (
            _ asked: TaskSpecification, _ before: TaskSpecification, _ owner: UInt32
        ) throws(FieldError) -> NewTask

    /// Changes what a task asks for, with an event, and takes it to where that leads (see
    /// ``TaskStanding/updated(by:now:)``). Bytes and resume data stay. A running task counts as the ready one it is
    /// stored as.
    ///
    /// - Parameter owner: only this user's tasks are known; `nil`: everyone's.
    /// - Throws: also ``StoreError/quota(_:)``, ``StoreError/nearlyFull(free:reserved:)`` where records become larger.
    package func update(
        _ id: TaskID, by changes: TaskChanges, owner: UInt32?, quota: Quota = Quota(), now: Milliseconds,
        judge: @escaping Judge
    ) async throws(StoreError) -> UpdateOutcome {
        try await update([id], by: changes, owner: owner, quota: quota, now: now, judge: judge)[id] ?? .unknown
    }

    /// As ``update(_:by:owner:quota:now:judge:)`` for each of `ids`.
    ///
    /// - Parameter ids: of as many tasks as there are; where a commit fails, those before it stay.
    package func update(
        _ ids: [TaskID], by changes: TaskChanges, owner: UInt32?, quota: Quota = Quota(), now: Milliseconds,
        judge: @escaping Judge
    ) async throws(StoreError) -> [TaskID: UpdateOutcome] {
        let identity = identity
        return try await inParts(ids, [:] as [TaskID: UpdateOutcome]) { database, id, outcomes in
            switch try database.plan(id, changes, owner: owner, identity: identity, now: now, judge) {
            case .failure(let reason):
                outcomes[id] = reason.outcome
                return 0
            case .success(let plan):
                if !plan.isEmpty {
                    try database.keepingRecords(
                        of: [plan.head.owner], within: quota, room: { try self.checkRoom(in: database) }
                    ) {
                        try database.carryOut(plan, now: now)
                    }
                }
                outcomes[id] = plan.isEmpty ? .unchanged : .updated
                return plan.bytes
            }
        }
    }

    /// What ``update(_:by:owner:quota:now:judge:)`` would say at this moment; changes nothing.
    package func judgeUpdate(
        _ id: TaskID, by changes: TaskChanges, owner: UInt32?, now: Milliseconds, judge: Judge
    ) throws(StoreError) -> UpdateOutcome {
        try judgeUpdate([id], by: changes, owner: owner, now: now, judge: judge)[id] ?? .unknown
    }

    /// As ``judgeUpdate(_:by:owner:now:judge:)`` for each of `ids`.
    package func judgeUpdate(
        _ ids: [TaskID], by changes: TaskChanges, owner: UInt32?, now: Milliseconds, judge: Judge
    ) throws(StoreError) -> [TaskID: UpdateOutcome] {
        try read { database in
            var outcomes: [TaskID: UpdateOutcome] = [:]
            for id in ids {
                switch try database.plan(id, changes, owner: owner, identity: identity, now: now, judge) {
                case .failure(let reason): outcomes[id] = reason.outcome
                case .success(let plan): outcomes[id] = plan.isEmpty ? .unchanged : .updated
                }
            }
            return outcomes
        }
    }
}

/// A task before and after a change.
private struct UpdatePlan {
    var head: TaskHead
    var standing: TaskStanding
    var before: StoredEntry
    var after: StoredEntry
    var secretsBefore: String?
    var secretsAfter: String?
    /// `nil`: as it is.
    var path: String?

    /// What was read and judged, which takes longer than writing it.
    var bytes: Int64 {
        [secretsBefore, secretsAfter].reduce(before.bytes.addingClamped(after.bytes)) {
            $0.addingClamped(Int64($1?.utf8.count ?? 0))
        }
    }

    var isEmpty: Bool { before == after && secretsBefore == secretsAfter && head.standing == standing }
}

/// Why there is no plan.
private struct NoPlan: Error {
    var outcome: UpdateOutcome
}

extension Database {
    fileprivate func plan(
        _ id: TaskID, _ changes: TaskChanges, owner: UInt32?, identity: String, now: Milliseconds,
        _ judge: TaskStore.Judge
    ) throws -> Result<UpdatePlan, NoPlan> {
        let found = try firstRow(
            """
            SELECT \(StoredEntry.columnsWithBatch), task.owner, state, reason, not_before, json, path FROM \(FlowSQL.tasks)
            LEFT JOIN task_secret ON task_secret.task_id = task.id WHERE task.id = ?
            """, [id.rawValue]
        ) { row in
            let first = StoredEntry.columnCount
            let head = TaskHead(id: id, owner: try row.owner(first), standing: try row.standing(first + 1))
            return (
                head: head, entry: try StoredEntry(row, at: 0), secrets: try row.textOrNil(first + 4),
                path: try row.textOrNil(first + 5)
            )
        }
        guard let found, owner == nil || found.head.owner == owner else {
            return .failure(NoPlan(outcome: .unknown))
        }
        let standing: TaskStanding
        do throws(IllegalTransition) {
            standing = try found.head.standing.updated(by: changes, now: now)
        } catch {
            return .failure(NoPlan(outcome: .refused(error)))
        }
        var whole = try found.entry.decoded()
        if let json = found.secrets { whole.restore(try StoredJSON.decode(TaskSecrets.self, from: json)) }
        var task: NewTask
        do throws(FieldError) {
            task = try judge(changes.applied(to: whole), whole, found.head.owner)
        } catch {
            return .failure(NoPlan(outcome: .wrong(error)))
        }
        if !changes.isOfName, let path = task.path, let before = found.path {
            // The name that the server gave the file stays in another directory.
            task.path = FileName.directory(of: path) + FileName.last(of: before)
        }
        return .success(
            UpdatePlan(
                head: found.head, standing: standing, before: found.entry,
                after: try StoredEntry(task, identity: identity), secretsBefore: found.secrets,
                secretsAfter: try StoredJSON.encode(secrets: task.secrets), path: task.path))
    }

    fileprivate func carryOut(_ plan: UpdatePlan, now: Milliseconds) throws {
        let id = plan.head.id
        try run(
            "UPDATE task SET \(StoredEntry.assignments), path = coalesce(?, path) WHERE id = ?",
            StatementArguments(plan.after.arguments + [plan.path, id.rawValue]))
        if plan.before.url != plan.after.url || plan.before.urlMark != plan.after.urlMark {
            try forgetSource(of: id)
            try run("UPDATE task SET found_checksum = NULL WHERE id = ?", [id.rawValue])
        }
        if plan.secretsBefore != plan.secretsAfter { try setSecrets(of: id, to: plan.secretsAfter) }
        var head = plan.head
        if head.standing != plan.standing {
            if head.standing.state == .failed {
                try apply(.retry, to: head, now: now)
            } else {
                // What went wrong with what was asked before says nothing of what is asked now.
                try run(
                    """
                    UPDATE task SET failures = 0, error_code = NULL, error_message = NULL, http_status = NULL
                    WHERE id = ?
                    """, [id.rawValue])
            }
            try setStanding(of: id, to: plan.standing)
            head.standing = plan.standing
        }
        try journal(.updated, of: head, at: now)
    }
}
