import GRDB
package import TaskModel

/// The progress of a task.
package struct TaskProgress: Sendable, Equatable {
    /// The number of bytes known to be on disk, or sent by an upload that ended.
    package var bytesDone: Int64
    package var bytesTotal: Int64?
    /// The number of body bytes received or sent in all attempts.
    package var bytesFetched: Int64
    /// The absolute path; `nil` keeps the stored value.
    package var path: String?
    /// The start time in milliseconds since 1970; `nil` keeps the stored value.
    package var startedAt: Milliseconds?
    /// The data that the engine needs to resume. For an upload it identifies the source file, so that a change of the
    /// source is detected. `nil` keeps the stored value at a checkpoint and removes it at a conclusion.
    package var resumeData: [UInt8]?
    /// The checksum found in a list of digests; `nil` keeps the stored value.
    package var foundChecksum: String?
    /// The attempts that have ended and are not stored yet, in their order.
    package var endedAttempts: [TaskAttempt] = []

    package init(
        bytesDone: Int64, bytesTotal: Int64?, bytesFetched: Int64, path: String? = nil,
        startedAt: Milliseconds? = nil, resumeData: [UInt8]? = nil, foundChecksum: String? = nil
    ) {
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
        self.bytesFetched = bytesFetched
        self.path = path
        self.startedAt = startedAt
        self.resumeData = resumeData
        self.foundChecksum = foundChecksum
    }
}

/// The result of a run of a task.
package struct TaskConclusion: Sendable, Equatable {
    package var lifecycle: TaskLifecycle
    package var attempts: Int
    /// The number of consecutive attempts without progress.
    package var failures: Int
    package var error: TaskFailure?
    package var verified: Bool
    package var finishedAt: Milliseconds?

    package init(
        lifecycle: TaskLifecycle, attempts: Int, failures: Int, error: TaskFailure? = nil, verified: Bool = false,
        finishedAt: Milliseconds? = nil
    ) {
        self.lifecycle = lifecycle
        self.attempts = attempts
        self.failures = failures
        self.error = error
        self.verified = verified
        self.finishedAt = finishedAt
    }
}

/// A change that the scheduler writes for a running task. A change for a task that was removed meanwhile is ignored.
package enum TaskChange: Sendable, Equatable {
    /// The start of a run. It is ignored where a command has ended or paused the task meanwhile.
    case started(TaskID, at: Milliseconds)
    /// The progress of a running task; no event is recorded.
    case checkpoint(TaskID, TaskProgress)
    /// The end of a run. The event has the type of the lifecycle's state; there is none for `queued`, to which a task
    /// returns when the daemon ends. `completed` removes the secrets, the piece digests and the resume data.
    case concluded(TaskID, TaskProgress, TaskConclusion)

    /// Whether the task waits after the change.
    package var beginsWait: Bool {
        if case .concluded(_, _, let conclusion) = self { conclusion.lifecycle.state == .waiting } else { false }
    }
}

extension TaskStore {
    /// Adds either all tasks or none.
    ///
    /// - Returns: the outcome of each task, in order; if two tasks have the same owner and key, the second outcome is
    ///   `existing`.
    /// - Throws: among others ``StoreError/quota(_:)`` and ``StoreError/nearlyFull(free:reserved:)``.
    package func add(
        _ tasks: [NewTask], quota: Quota = Quota(), now: Milliseconds
    ) async throws(StoreError) -> [AddOutcome] {
        let identity = identity
        return try await writes.perform(weight: tasks.count) { database in
            let outcomes = try database.keepingRecords(
                of: Set(tasks.lazy.map(\.owner)), within: quota, room: { try self.checkRoom(in: database) }
            ) {
                try database.add(tasks, identity: identity, now: now)
            }
            let batches = Dictionary(grouping: tasks, by: \.owner).mapValues { tasks in
                quota.tasksPerBatch == nil ? [] : Set(tasks.compactMap(\.specification.batch))
            }
            for (owner, batches) in batches { try database.check(quota, of: owner, batches: batches) }
            return outcomes
        }
    }

    /// Writes changes in one transaction.
    ///
    /// - Parameters:
    ///   - holds: holds of hosts to store with the changes.
    ///   - isLasting: whether the changes must be durable.
    /// - Returns: whether ``settleDependencies(now:report:)`` has something to do.
    @discardableResult
    package func write(
        _ changes: [TaskChange], holds: [HostHold] = [], isLasting: Bool = true, now: Milliseconds
    ) async throws(StoreError) -> Bool {
        try await writes.perform(weight: changes.count, isLasting: isLasting) { database in
            try database.write(holds, now: now)
            let runner = StatementRunner(database)
            var events = RunEvents(runner)
            for change in changes {
                switch change {
                case .started(let id, let at):
                    try events.addStart(of: id, at: at)
                case .checkpoint(let id, let progress):
                    try database.checkpoint(id, progress, runner)
                case .concluded(let id, let progress, let conclusion):
                    try database.conclude(id, progress, conclusion, runner, &events, now: now)
                }
            }
            try events.insert()
            return try database.firstEndedDependency() != nil
        }
    }
}

extension TaskProgress {
    fileprivate static let assignments =
        "bytes_done = ?, bytes_total = ?, bytes_fetched = ?, path = coalesce(?, path), "
        + "started_at = coalesce(?, started_at), found_checksum = coalesce(?, found_checksum)"
    fileprivate static let checkpointSQL = "UPDATE task SET \(assignments) WHERE id = ?"

    fileprivate func bind(_ row: inout RowBinding) {
        row.bind(bytesDone)
        row.bind(bytesTotal)
        row.bind(bytesFetched)
        row.bind(path)
        row.bind(startedAt)
        row.bind(foundChecksum)
    }
}

extension TaskConclusion {
    fileprivate static let updateSQL = """
        UPDATE task SET \(TaskProgress.assignments), state = ?, reason = ?, not_before = ?, attempts = ?,
            failures = ?, verified = ?, finished_at = ?, error_code = ?, error_message = ?, http_status = ?
        WHERE id = ?
        RETURNING owner,
            (SELECT batch FROM fair_share_group WHERE fair_share_group.id = task.group_id AND \(GroupSQL.visible)),
            EXISTS (SELECT 1 FROM task_resume WHERE task_id = id),
            EXISTS (SELECT 1 FROM task_secret WHERE task_id = id),
            EXISTS (SELECT 1 FROM task_piece_hashes WHERE task_id = id)
        """

    fileprivate func bind(_ row: inout RowBinding) {
        row.bind(lifecycle)
        row.bind(Int64(attempts))
        row.bind(Int64(failures))
        row.bind(verified ? 1 : 0)
        row.bind(finishedAt)
        row.bind(error)
    }
}

/// The facts in the row of a concluded task.
private struct ConcludedRow {
    let owner: UInt32
    let batch: OwnedBatch?
    let hasResumeData: Bool
    let hasSecrets: Bool
    let hasPieceHashes: Bool

    init(_ row: RowReader) throws(StoreError) {
        let owner = try row.owner(0)
        self.owner = owner
        batch = try row.textOrNil(1).map { OwnedBatch(owner: owner, name: $0) }
        hasResumeData = try row.integer(2) != 0
        hasSecrets = try row.integer(3) != 0
        hasPieceHashes = try row.integer(4) != 0
    }
}

extension Database {
    fileprivate func checkpoint(_ id: TaskID, _ progress: TaskProgress, _ runner: StatementRunner) throws {
        try runner.run(TaskProgress.checkpointSQL) { row in
            progress.bind(&row)
            row.bind(id.rawValue)
        }
        guard changesCount > 0 else { return }
        if let resumeData = progress.resumeData { try setResumeData(of: id, to: resumeData) }
        try add(progress.endedAttempts, of: id, runner)
    }

    fileprivate func conclude(
        _ id: TaskID, _ progress: TaskProgress, _ conclusion: TaskConclusion, _ runner: StatementRunner,
        _ events: inout RunEvents, now: Milliseconds
    ) throws {
        let lifecycle = conclusion.lifecycle
        let found = try runner.firstRow(
            TaskConclusion.updateSQL,
            bind: { row in
                progress.bind(&row)
                conclusion.bind(&row)
                row.bind(id.rawValue)
            }, ConcludedRow.init)
        guard let found else { return }
        try add(progress.endedAttempts, of: id, runner)
        let resumeData = lifecycle.state == .completed ? nil : progress.resumeData
        if resumeData != nil || found.hasResumeData { try setResumeData(of: id, to: resumeData) }
        if lifecycle.state == .completed {
            if found.hasSecrets { try setSecrets(of: id, to: nil) }
            if found.hasPieceHashes { try setPieceHashes(of: id, to: nil) }
        }
        guard let type = Self.eventType(of: lifecycle.state) else { return }
        events.addEnd(
            type, of: TaskHead(id: id, owner: found.owner, lifecycle: lifecycle), bytesDone: progress.bytesDone,
            bytesTotal: progress.bytesTotal, error: conclusion.error, at: now)
        guard lifecycle.state.isEnded, let batch = found.batch, let totals = try totals(ofEnded: batch) else { return }
        try events.insert()
        try journalEnd(of: batch, totals, at: now)
    }

    private static func eventType(of state: TaskState) -> TaskEvent.Kind? {
        switch state {
        case .completed: .completed
        case .failed: .failed
        case .cancelled: .cancelled
        case .waiting: .waiting
        case .paused: .paused
        case .queued, .active: nil
        }
    }
}
