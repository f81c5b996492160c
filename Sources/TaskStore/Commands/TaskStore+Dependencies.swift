import GRDB
package import TaskModel

extension TaskStore {
    /// Makes tasks ready whose dependency has completed, and fails tasks whose dependency ended otherwise or was
    /// removed. Dependents of tasks that fail here are settled too, in the same commit as far as that may go.
    ///
    /// - Parameter report: receives the tasks that failed together in a commit, after it.
    /// - Returns: the number of changed tasks.
    package func settleDependencies(
        now: Milliseconds, report: @Sendable ([TaskID], TaskFailure) -> Void = { _, _ in }
    ) async throws(StoreError) -> Int {
        var total = 0
        while try read({ try $0.firstEndedDependency() }) != nil {
            let settled = try await inCommit { try $1.settleDependents(within: $0, now: now) }
            total += settled.count
            for (ids, failure) in settled.failed { report(ids, failure) }
        }
        return total
    }
}

/// The dependents that a commit settled.
private struct SettledDependents: Sendable {
    /// The number of changed tasks.
    var count = 0
    /// The tasks that failed, by the task that they depend on.
    var failed: [(ids: [TaskID], failure: TaskFailure)] = []
}

extension Database {
    /// Returns the first task whose dependents are to be settled.
    func firstEndedDependency() throws -> Int64? {
        try firstRow("SELECT after_task FROM ended_dependency ORDER BY after_task LIMIT 1") { try $0.integer(0) }
    }

    /// Settles the dependents of as many recorded tasks as fit into a commit.
    fileprivate func settleDependents(within limit: CommitLimit, now: Milliseconds) throws -> SettledDependents {
        var settled = SettledDependents()
        var budget = CommitBudget(limit, in: self)
        while let first = try firstEndedDependency() {
            try settle(first, within: &budget, now: now, &settled)
            budget.spend()
            if budget.isSpent(in: self) { break }
        }
        return settled
    }

    /// Settles the dependents of a recorded task, and removes the record when there are none left.
    private func settle(
        _ first: Int64, within budget: inout CommitBudget, now: Milliseconds, _ settled: inout SettledDependents
    ) throws {
        let rows = max(1, budget.rowsLeft)
        let state = try firstRow("SELECT state FROM task WHERE id = ?", [first]) { try $0.word(0) as TaskState }
        // The task may have been returned to the queue by a retry.
        let isOpen = state.map { !$0.isEnded } ?? false
        let waiting: [TaskHead] =
            isOpen
            ? []
            : try self.rows(
                """
                SELECT id, owner, state, reason, not_before FROM task WHERE state = 'waiting' AND reason = 'dependency'
                    AND id IN (SELECT task_id FROM task_dependency WHERE after_task = ?) LIMIT ?
                """, [first, rows], TaskHead.init)
        var (count, failed, failure) = (0, [] as [TaskID], nil as TaskFailure?)
        for head in waiting {
            if state == .completed {
                try release(head.id, now: now)
            } else {
                failure = try fail(head, after: TaskID(first), state, now: now)
                failed.append(head.id)
            }
            count += 1
            budget.spend()
            if budget.isSpent(in: self) { break }
        }
        settled.count += count
        if let failure { settled.failed.append((failed, failure)) }
        if count == waiting.count, count < rows {
            try run("DELETE FROM ended_dependency WHERE after_task = ?", [first])
            // Paused dependents no longer need to wait either.
            if state == .completed { try run("DELETE FROM task_dependency WHERE after_task = ?", [first]) }
        }
    }

    private func release(_ id: TaskID, now: Milliseconds) throws {
        let startAt = try record(id, owner: nil)?.specification.startAt
        try setLifecycle(of: id, to: TaskLifecycle(startAt: startAt, now: now))
    }

    private func fail(
        _ head: TaskHead, after id: TaskID, _ state: TaskState?, now: Milliseconds
    ) throws -> TaskFailure {
        var head = head
        try head.lifecycle.apply(.abandon)
        let failure = TaskFailure(
            code: .dependency,
            message: state.map { "task \(id), which it depends on, is \($0.rawValue)" }
                ?? "task \(id), which it depends on, no longer exists", httpStatus: nil)
        try setLifecycle(of: head.id, to: head.lifecycle)
        try run(
            "UPDATE task SET finished_at = ?, error_code = ?, error_message = ? WHERE id = ?",
            [now, failure.code.rawValue, failure.message, head.id.rawValue])
        try journal(.failed, of: head, error: failure, at: now)
        return failure
    }

    /// Sets or removes a task's dependency.
    ///
    /// - Parameters:
    ///   - after: the task to depend on; `nil` for none.
    ///   - steps: the number of tasks that the checks of one commit may still follow, by which it is reduced. The time
    ///     for the checks would otherwise grow with the square of a chain's length.
    /// - Throws: ``StoreError/cycle(_:)``.
    func setDependency(of id: TaskID, after: TaskID?, steps: inout Int) throws {
        try removeDependency(of: id)
        guard let after else { return }
        var next: TaskID? = after
        while let present = next {
            steps -= 1
            guard steps >= 0 else {
                throw StoreError.cycle(
                    "the tasks named by after-task form chains too long to be changed at once; change them in parts")
            }
            guard present != id else {
                throw StoreError.cycle("task \(id) would depend on itself: its after-task \(after) waits for it")
            }
            next = try firstRow("SELECT after_task FROM task_dependency WHERE task_id = ?", [present.rawValue]) {
                try $0.id(0)
            }
        }
        try setUncheckedDependency(of: id, after: after)
    }

    /// Sets a dependency that closes no cycle: that of a new task, on which no other depends, or one that the task had
    /// before.
    func setUncheckedDependency(of id: TaskID, after: TaskID) throws {
        // A replaced row also records a dependency whose task has ended (see the trigger `dependency_comes`).
        try run(
            "INSERT OR REPLACE INTO task_dependency (task_id, after_task) VALUES (?, ?)", [id.rawValue, after.rawValue])
    }

    private func removeDependency(of id: TaskID) throws {
        try run("DELETE FROM task_dependency WHERE task_id = ?", [id.rawValue])
    }

    /// Returns what a task waits for that a user resumes or retries: its dependency, or else its start time. `resumeNow`
    /// removes both.
    ///
    /// - Returns: the waiting lifecycle; `nil` where the task waits for neither.
    func wait(of id: TaskID, after event: TaskLifecycle.Event, now: Milliseconds) throws -> TaskLifecycle? {
        guard event == .resume || event == .retry || event == .resumeNow else { return nil }
        if event == .resumeNow {
            try removeDependency(of: id)
            try removeStart(of: id)
            return nil
        }
        let after = try firstRow("SELECT after_task FROM task_dependency WHERE task_id = ?", [id.rawValue]) {
            try $0.id(0)
        }
        if let after {
            // A removed task can no longer end, so waiting for it is pointless.
            let exists = try firstRow("SELECT 1 FROM task WHERE id = ?", [after.rawValue]) { _ in true } ?? false
            if exists {
                try setUncheckedDependency(of: id, after: after)
                return TaskLifecycle(follows: true)
            }
            try removeDependency(of: id)
        }
        let lifecycle = TaskLifecycle(startAt: try entryWithStart(of: id)?.decoded().startAt, now: now)
        return lifecycle.state == .waiting ? lifecycle : nil
    }

    /// Returns the entry of a task that has a start time.
    private func entryWithStart(of id: TaskID) throws -> StoredEntry? {
        try firstRow(
            """
            SELECT \(StoredEntry.columnsWithBatch) FROM \(GroupSQL.tasks)
            WHERE task.id = ? AND instr(specification, '"startAt"') > 0
            """, [id.rawValue]
        ) { try StoredEntry($0, at: 0) }
    }

    private func removeStart(of id: TaskID) throws {
        guard var whole = try entryWithStart(of: id)?.decoded() else { return }
        whole.startAt = nil
        whole.startAtText = nil
        var rests = StoredEntry.Rests()
        try run("UPDATE task SET specification = ? WHERE id = ?", [try rests.text(of: whole), id.rawValue])
    }
}
