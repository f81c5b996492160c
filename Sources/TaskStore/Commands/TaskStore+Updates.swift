import GRDB
package import TaskModel

/// The outcome of a change to a task's specification.
package enum UpdateOutcome: Sendable, Equatable {
    case updated
    /// The task already has the requested specification and lifecycle.
    case unchanged
    /// The id has no task that the caller may see.
    case unknown
    /// The task is completed or cancelled.
    case refused(IllegalTransition)
    case wrong(FieldError)
}

extension TaskStore {
    /// A function that validates the complete new specification, including secrets, and separates the secrets from it.
    /// It also receives the previous specification. The path of the result becomes the task's path; `nil` keeps the
    /// current path.
    package typealias Validation =
        @Sendable (
            _ asked: TaskSpecification, _ before: TaskSpecification, _ owner: UInt32
        ) throws(FieldError) -> NewTask

    /// Changes a task's specification, records an event, and changes the task's lifecycle accordingly (see
    /// ``TaskLifecycle/updated(by:startAt:now:)``). Bytes and resume data are kept. A running task is treated as ready, which
    /// is its stored state.
    ///
    /// - Parameter owner: the user whose tasks can be changed; `nil` for all users.
    /// - Throws: among others ``StoreError/quota(_:)`` and ``StoreError/nearlyFull(free:reserved:)``, if records become
    ///   larger.
    package func update(
        _ id: TaskID, by changes: TaskChanges, owner: UInt32?, quota: Quota = Quota(), now: Milliseconds,
        validate: @escaping Validation
    ) async throws(StoreError) -> UpdateOutcome {
        try await update([id], by: changes, owner: owner, quota: quota, now: now, validate: validate)[id] ?? .unknown
    }

    /// Changes each of `ids` like ``update(_:by:owner:quota:now:validate:)``.
    ///
    /// - Parameter ids: any number of tasks; if a commit fails, the changes of previous commits remain.
    package func update(
        _ ids: [TaskID], by changes: TaskChanges, owner: UInt32?, quota: Quota = Quota(), now: Milliseconds,
        validate: @escaping Validation
    ) async throws(StoreError) -> [TaskID: UpdateOutcome] {
        let identity = identity
        let none = (outcomes: [:] as [TaskID: UpdateOutcome], steps: StagedBatchOutcome.mostDependencySteps)
        return try await inParts(ids, none) { database, id, done in
            switch try database.plan(id, changes, owner: owner, identity: identity, now: now, validate) {
            case .failure(let reason):
                done.outcomes[id] = reason.outcome
                return 0
            case .success(let plan):
                if !plan.isEmpty {
                    try database.keepingRecords(
                        of: [plan.head.owner], within: quota, room: { try self.checkRoom(in: database) }
                    ) {
                        try database.carryOut(plan, quota, &done.steps, now: now)
                    }
                }
                done.outcomes[id] = plan.isEmpty ? .unchanged : .updated
                return plan.bytes
            }
        }.outcomes
    }

    /// Returns the current outcome of ``update(_:by:owner:quota:now:validate:)`` without making the change.
    package func checkUpdate(
        _ id: TaskID, by changes: TaskChanges, owner: UInt32?, now: Milliseconds, validate: Validation
    ) throws(StoreError) -> UpdateOutcome {
        try checkUpdate([id], by: changes, owner: owner, now: now, validate: validate)[id] ?? .unknown
    }

    /// Validates a change of each of `ids` like ``checkUpdate(_:by:owner:now:validate:)``.
    package func checkUpdate(
        _ ids: [TaskID], by changes: TaskChanges, owner: UInt32?, now: Milliseconds, validate: Validation
    ) throws(StoreError) -> [TaskID: UpdateOutcome] {
        try read { database in
            var outcomes: [TaskID: UpdateOutcome] = [:]
            for id in ids {
                switch try database.plan(id, changes, owner: owner, identity: identity, now: now, validate) {
                case .failure(let reason): outcomes[id] = reason.outcome
                case .success(let plan): outcomes[id] = plan.isEmpty ? .unchanged : .updated
                }
            }
            return outcomes
        }
    }

    // MARK: Paths

    /// The key of the places of downloads for which the paths were stored.
    private static let placesName = "download-places"
    /// The number of paths read at a time.
    private static let pathsTogether = 5_000

    /// Stores the paths that downloads have where directories of downloads are others than before. Those that have
    /// completed stay where they are.
    ///
    /// - Parameters:
    ///   - places: a text that is another one where a directory may have changed.
    ///   - running: the running tasks, which keep their place.
    ///   - directory: Returns the absolute directory of an owner's task that names `directory`; `nil` to keep the path.
    /// - Returns: the numbers of downloads that have begun in another directory than they will continue in, by that
    ///   directory.
    package func updatePaths(
        for places: String, running: Set<TaskID>,
        _ directory: @Sendable (_ directory: String?, _ owner: UInt32) -> String?
    ) async throws(StoreError) -> [String: Int] {
        let stored = try read { database in
            try database.firstRow("SELECT value FROM meta WHERE name = ?", [Self.placesName]) { try $0.text(0) }
        }
        guard stored != places else { return [:] }
        var last: Int64 = 0
        var left: [String: Int] = [:]
        while true {
            let page = try read { [last] database in
                try database.rows(
                    """
                    SELECT id, owner, directory, path, bytes_done > 0 FROM task
                    WHERE id > ? AND kind = 'download' AND state <> 'completed' AND path IS NOT NULL ORDER BY id LIMIT ?
                    """, [last, Self.pathsTogether]
                ) { row in
                    (
                        id: try row.id(0), owner: try row.owner(1), directory: try row.textOrNil(2),
                        path: try row.text(3), hasBegun: try row.integer(4) != 0
                    )
                }
            }
            guard let end = page.last else { break }
            last = end.id.rawValue
            var moved: [(id: TaskID, from: String, to: String)] = []
            for task in page {
                guard let now = directory(task.directory, task.owner) else { continue }
                let name = FileName.last(of: task.path)
                let path = (now == "/" ? "" : now) + "/" + name
                if path == task.path { continue }
                if task.hasBegun || running.contains(task.id) {
                    left[String(task.path.dropLast(name.count + 1)), default: 0] += 1
                }
                if !running.contains(task.id) { moved.append((task.id, task.path, path)) }
            }
            _ = try await inParts(moved, ()) { database, task, _ in
                try database.run(
                    "UPDATE task SET path = ? WHERE id = ? AND path = ? AND state <> 'completed'",
                    [task.to, task.id.rawValue, task.from])
                return 0
            }
        }
        // Those of running tasks are looked at again the next time.
        guard running.isEmpty else { return left }
        try await writes.perform { try $0.setMetaText(Self.placesName, to: places) }
        return left
    }
}

/// The states of a task before and after a change.
private struct UpdatePlan {
    var head: TaskHead
    var lifecycle: TaskLifecycle
    /// The task to wait for, before and after.
    var afterTask: (before: TaskID?, after: TaskID?)
    /// Whether the expected digest changes.
    var isOfDigest: Bool
    var before: StoredEntry
    var after: StoredEntry
    var secretsBefore: String?
    var secretsAfter: String?
    /// The new path; `nil` to keep the current one.
    var path: String?

    /// The number of bytes read and validated, which takes longer than writing them.
    var bytes: Int64 {
        [secretsBefore, secretsAfter].reduce(before.bytes.addingClamped(after.bytes)) {
            $0.addingClamped(Int64($1?.utf8.count ?? 0))
        }
    }

    var isEmpty: Bool { before == after && secretsBefore == secretsAfter && head.lifecycle == lifecycle }
}

/// An outcome without a change to carry out.
private struct NoPlan: Error {
    var outcome: UpdateOutcome
}

extension Database {
    fileprivate func plan(
        _ id: TaskID, _ changes: TaskChanges, owner: UInt32?, identity: String, now: Milliseconds,
        _ validate: TaskStore.Validation
    ) throws -> Result<UpdatePlan, NoPlan> {
        let found = try firstRow(
            """
            SELECT \(StoredEntry.columnsWithBatch), task.owner, state, reason, not_before, json, path
            FROM \(GroupSQL.tasks)
            LEFT JOIN task_secret ON task_secret.task_id = task.id WHERE task.id = ?
            """, [id.rawValue]
        ) { row in
            let first = StoredEntry.columnCount
            let head = TaskHead(id: id, owner: try row.owner(first), lifecycle: try row.lifecycle(first + 1))
            return (
                head: head, entry: try StoredEntry(row, at: 0), secrets: try row.textOrNil(first + 4),
                path: try row.textOrNil(first + 5)
            )
        }
        guard let found, owner == nil || found.head.owner == owner else {
            return .failure(NoPlan(outcome: .unknown))
        }
        var whole = try found.entry.decoded()
        if let json = found.secrets { whole.restore(try StoredJSON.decode(TaskSecrets.self, from: json)) }
        let asked = changes.applied(to: whole)
        let lifecycle: TaskLifecycle
        do throws(IllegalTransition) {
            lifecycle = try found.head.lifecycle.updated(by: changes, startAt: asked.startAt, now: now)
        } catch {
            return .failure(NoPlan(outcome: .refused(error)))
        }
        var task: NewTask
        do throws(FieldError) {
            task = try validate(asked, whole, found.head.owner)
        } catch {
            return .failure(NoPlan(outcome: .wrong(error)))
        }
        if !changes.isOfName, let path = task.path, let before = found.path {
            // The file name given by the server is kept when the directory changes.
            task.path = FileName.directory(of: path) + FileName.last(of: before)
        }
        return .success(
            UpdatePlan(
                head: found.head, lifecycle: lifecycle, afterTask: (whole.afterTask, asked.afterTask),
                isOfDigest: changes.isOfDigest, before: found.entry,
                after: try StoredEntry(task, identity: identity), secretsBefore: found.secrets,
                secretsAfter: try StoredJSON.encode(secrets: task.secrets), path: task.path))
    }

    fileprivate func carryOut(_ plan: UpdatePlan, _ quota: Quota, _ steps: inout Int, now: Milliseconds) throws {
        let id = plan.head.id
        try run(
            "UPDATE task SET \(StoredEntry.assignments), path = coalesce(?, path) WHERE id = ?",
            StatementArguments(plan.after.arguments + [plan.path, id.rawValue]))
        if plan.before.url != plan.after.url || plan.before.urlFingerprint != plan.after.urlFingerprint {
            try forgetSource(of: id)
        }
        if plan.before.url != plan.after.url || plan.isOfDigest {
            try run("UPDATE task SET found_checksum = NULL WHERE id = ?", [id.rawValue])
        }
        let batchLeft = plan.before.batch != plan.after.batch ? plan.before.batch : nil
        if plan.before.batch != plan.after.batch {
            try move(id, toBatch: plan.after.batch, of: plan.head.owner)
            try check(quota, of: plan.head.owner, batches: Set([plan.after.batch].compactMap(\.self)))
        }
        if plan.afterTask.before != plan.afterTask.after {
            try setDependency(of: id, after: plan.afterTask.after, steps: &steps)
        }
        // A paused task that needed a login or a URL may have it now.
        try run(
            "UPDATE task SET pauses = pauses & ?2 WHERE id = ?1 AND pauses & ~?2 <> 0",
            [id.rawValue, TaskPauses.widths.rawValue])
        if plan.secretsBefore != plan.secretsAfter { try setSecrets(of: id, to: plan.secretsAfter) }
        var head = plan.head
        if head.lifecycle != plan.lifecycle {
            if head.lifecycle.state == .failed {
                try apply(.retry, to: head, now: now)
            } else {
                // Failures with the previous specification do not count for the new one.
                try run(
                    """
                    UPDATE task SET failures = 0, error_code = NULL, error_message = NULL, http_status = NULL
                    WHERE id = ?
                    """, [id.rawValue])
            }
            try setLifecycle(of: id, to: plan.lifecycle)
            head.lifecycle = plan.lifecycle
        }
        try journal(.updated, of: head, at: now)
        if let batchLeft { try journalEnd(of: OwnedBatch(owner: head.owner, name: batchLeft), at: now) }
    }
}
