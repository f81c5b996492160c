import Synchronization
package import TaskFiles
package import TaskModel
import TaskStore

/// The effect, actual or expected, of applying a staged batch.
package struct StagedBatchChanges: Sendable, Equatable {
    package var added: Int
    package var updated: Int
    package var unchanged: Int
    /// The number of ended tasks whose file is fetched again if it changed.
    package var checked: Int
    package var pruned: Int
    /// The ids of the added tasks, in the order of the entries.
    package var ids: [ClosedRange<Int64>]
    /// The first changes of a dry run; `nil` for a commit.
    package var planned: [PlannedChange]?
}

/// The staged batches that are open in this process.
struct StagedBatchRegister {
    /// The monotonic time of the last call for each open staged batch.
    var lastCalls: [Int64: Milliseconds] = [:]
    /// Whether the remains of finished staged batches are being deleted.
    var isSweeping = false
}

/// Staged batches of entries that are applied atomically, such as a queue file.
extension TaskQueue {
    /// Begins a staged batch.
    ///
    /// - Parameter batch: the batch to synchronise with the entries; `nil` to make every entry a new task.
    /// - Returns: the staged batch's number.
    package func beginStagedBatch(batch: String?, by caller: Caller) async throws(QueueError) -> Int64 {
        if let batch {
            var probe = TaskSpecification(url: "http://localhost/")
            probe.batch = batch
            do throws(FieldError) { try probe.check() } catch { throw .field(error) }
        }
        defer { sweep() }
        let stagedBatch = try await stored { () async throws(StoreError) in
            try await store.beginStagedBatch(owner: caller.uid, batch: batch)
        }
        stagedBatches.withLock { $0.lastCalls[stagedBatch] = clock.monotonic() }
        watch(stagedBatch)
        return stagedBatch
    }

    /// The idle time after which a staged batch is discarded because its client is presumed gone, in milliseconds.
    static let stagedBatchTimeout: Milliseconds = 600_000

    private func watch(_ stagedBatch: Int64) {
        Task { [weak self, clock] in
            while true {
                let now = clock.monotonic()
                guard let lastCall = self?.stagedBatches.withLock({ $0.lastCalls[stagedBatch] }) else { return }
                guard now - lastCall >= Self.stagedBatchTimeout else {
                    await clock.sleep(Self.stagedBatchTimeout - (now - lastCall))
                    continue
                }
                await self?.drop(stagedBatch)
                return
            }
        }
    }

    /// Discards a staged batch. Errors are ignored, since a staged batch that no longer exists needs no removal.
    private func drop(_ stagedBatch: Int64) async {
        stagedBatches.withLock { $0.lastCalls[stagedBatch] = nil }
        try? await store.abortStagedBatch(stagedBatch)
        sweep()
    }

    /// Validated entries that are about to be added to a staged batch.
    package struct PreparedEntries: Sendable {
        fileprivate var tasks: PreparedTasks
        fileprivate var now: Milliseconds
        /// The places that must be usable before the entries are accepted.
        fileprivate var places: [Admission.PlacedTask] = []
    }

    package func prepare(_ entries: [TaskSpecification], by caller: Caller) throws(QueueError) -> PreparedEntries {
        let now = clock.now()
        var caller = caller
        // Open files are not accepted, since it is not known yet which entries become tasks.
        caller.files = nil
        let (tasks, admission) = try admit(entries, by: caller, list: "entries", now: now)
        return PreparedEntries(
            tasks: try stored { () throws(StoreError) in try store.prepare(tasks) }, now: now,
            places: admission.places)
    }

    /// Validates entries and adds them to a staged batch.
    ///
    /// - Returns: the number of entries in the staged batch so far.
    package func put(_ stagedBatch: Int64, _ entries: [TaskSpecification], by caller: Caller) async throws(QueueError)
        -> Int
    {
        try await put(stagedBatch, try prepare(entries, by: caller), by: caller)
    }

    /// Adds prepared entries to a staged batch.
    ///
    /// - Returns: the number of entries in the staged batch so far.
    package func put(_ stagedBatch: Int64, _ entries: PreparedEntries, by caller: Caller) async throws(QueueError)
        -> Int
    {
        stagedBatches.withLock {
            if $0.lastCalls[stagedBatch] != nil { $0.lastCalls[stagedBatch] = clock.monotonic() }
        }
        try await validate(entries.places, list: "entries")
        let quota = settings.quota
        do throws(QueueError) {
            return try await inStagedBatch { () async throws(StoreError) in
                try await store.put(stagedBatch, entries.tasks, owner: caller.uid, quota: quota, now: entries.now)
            }
        } catch {
            // A refused staged batch must not remain available for a commit.
            if error.refusal?.code == .quota { await drop(stagedBatch) }
            throw error
        }
    }

    /// Commits a staged batch.
    ///
    /// - Parameter receipt: the receipt's name, as for
    ///   ``TaskStore/commitStagedBatch(_:owner:prune:dryRun:quota:now:receipt:leaving:)``.
    package func commitStagedBatch(
        _ stagedBatch: Int64, prune: Bool, dryRun: Bool, receipt: String? = nil, by caller: Caller
    ) async throws(QueueError) -> StagedBatchChanges {
        let now = clock.now()
        let (outcome, batch, stopped) = try await commit(
            stagedBatch, prune: prune, dryRun: dryRun, receipt: receipt, by: caller, now: now)
        let changes = StagedBatchChanges(
            added: outcome.added, updated: outcome.updated, unchanged: outcome.unchanged,
            checked: outcome.rechecked.count, pruned: outcome.pruned, ids: outcome.idRanges,
            planned: outcome.plannedChanges)
        guard !dryRun else { return changes }
        log(outcome, batch: batch, by: caller)
        stagedBatches.withLock { $0.lastCalls[stagedBatch] = nil }
        sweep()
        for part in Self.parts(of: outcome.cancelled) { try await stop(pruned: part, owner: caller.uid, now: now) }
        // A task that started just before the commit is restarted with the new options of its entry.
        for part in Self.parts(of: outcome.changed.filter { !stopped.contains($0) }) {
            try await restart(part, moved: outcome.moved, owner: caller.uid)
        }
        await changed()
        // Removed tasks no longer count towards the quota.
        if outcome.pruned > outcome.cancelled.count {
            await onSharedThreads { await scheduler.quotaChanged(for: [caller.uid]) }
        }
        return changes
    }

    private func log(_ outcome: StagedBatchOutcome, batch: String?, by caller: Caller) {
        let commands = [
            CommandLog(.added, "added", ranges: outcome.idRanges), CommandLog(.updated, "changed", outcome.changed),
            CommandLog(.cancelled, "cancelled", outcome.cancelled),
            CommandLog(.retried, "queued again", outcome.rechecked),
        ]
        for var command in commands.map({ $0.by(caller) }) {
            // A staged batch consists of the caller's tasks.
            (command.owner, command.batch) = (caller.uid, batch)
            logger.log(command)
        }
    }

    /// The maximum number of entries per call, as on the control socket.
    private static let entriesInPart = 1_000

    /// Applies entries atomically.
    ///
    /// - Parameters:
    ///   - batch: as for ``beginStagedBatch(batch:by:)``.
    ///   - prune, receipt: as for ``commitStagedBatch(_:prune:dryRun:receipt:by:)``.
    ///   - validatesPlaces: Whether to refuse entries whose place is unusable. Otherwise their tasks wait for the
    ///     place, which suits callers without a person who reads the refusal.
    /// - Throws: ``QueueError``. The error of a field names it in the form `entries[3].url`.
    package func apply(
        _ entries: [TaskSpecification], batch: String?, prune: Bool = false, receipt: String? = nil,
        validatesPlaces: Bool = false, by caller: Caller
    ) async throws(QueueError) -> StagedBatchChanges {
        let stagedBatch = try await beginStagedBatch(batch: batch, by: caller)
        do throws(QueueError) {
            for start in stride(from: 0, to: entries.count, by: Self.entriesInPart) {
                let part = Array(entries[start..<min(start + Self.entriesInPart, entries.count)])
                do throws(QueueError) {
                    var prepared = try prepare(part, by: caller)
                    if !validatesPlaces { prepared.places = [] }
                    _ = try await put(stagedBatch, prepared, by: caller)
                } catch {
                    throw error.movingEntries(by: start)
                }
            }
            return try await commitStagedBatch(stagedBatch, prune: prune, dryRun: false, receipt: receipt, by: caller)
        } catch {
            try? await abortStagedBatch(stagedBatch, by: caller)
            throw error
        }
    }

    /// Commits a staged batch, after stopping the running tasks that it changes.
    ///
    /// - Returns: the outcome, the batch, and the tasks whose runs were ended for the commit.
    private func commit(
        _ stagedBatch: Int64, prune: Bool, dryRun: Bool, receipt: String?, by caller: Caller, now: Milliseconds
    ) async throws(QueueError) -> (StagedBatchOutcome, batch: String?, stopped: Set<TaskID>) {
        let (store, settings) = (store, settings)
        let commit: @Sendable (_ dryRun: Bool) async -> Result<StagedBatchOutcome, StoreError> = { dryRun in
            do throws(StoreError) {
                return .success(
                    try await store.commitStagedBatch(
                        stagedBatch, owner: caller.uid, prune: prune, dryRun: dryRun, quota: settings.quota, now: now,
                        receipt: receipt,
                        leaving: { moved in
                            Self.removeParts(of: Array(moved.keys), moved, owner: caller.uid, settings, store.identity)
                        }))
            } catch {
                return .failure(error)
            }
        }
        let batch = try await inStagedBatch { () async throws(StoreError) in
            try store.batch(ofStagedBatch: stagedBatch, owner: caller.uid)
        }
        let anyRuns = await onSharedThreads { await scheduler.runningCount(owner: caller.uid) > 0 }
        guard !dryRun, batch != nil, anyRuns else {
            let result = await commit(dryRun)
            return (try await inStagedBatch { () async throws(StoreError) in try result.get() }, batch, [])
        }
        // Running tasks that the staged batch changes are stopped first. A task that can no longer be stopped completes
        // with its old options, and its entry finds it completed.
        let expected = await commit(true)
        let running = await onSharedThreads { await scheduler.runningIDs }
        let changing = try await inStagedBatch { () async throws(StoreError) in try expected.get() }.changed
            .filter(running.contains)
        let result = await scheduler.withStopped(changing, order: .release, owner: caller.uid) { _ in
            let result = await commit(false)
            if case .success(let outcome) = result {
                Self.removeParts(of: changing, outcome.moved, owner: caller.uid, settings, store.identity)
            }
            return result
        }
        return (
            try await inStagedBatch { () async throws(StoreError) in try result.get() }, batch, Set(changing)
        )
    }

    /// Removes the part files of tasks that have moved to another directory.
    ///
    /// - Parameter moved: the previous options of tasks that now have another directory.
    private static func removeParts(
        of ids: [TaskID], _ moved: [TaskID: TaskSpecification], owner: UInt32, _ settings: QueueSettings,
        _ identity: String
    ) {
        var remover = TaskFileRemover(settings: settings, identity: identity)
        for id in ids {
            if let before = moved[id] { remover.removePart(of: id, before, owner: owner) }
        }
        remover.finish()
    }

    /// Restarts running tasks with their new options.
    ///
    /// - Parameter moved: the previous options of tasks that now have another directory.
    private func restart(
        _ ids: [TaskID], moved: [TaskID: TaskSpecification], owner: UInt32
    ) async throws(QueueError) {
        let (store, settings) = (store, settings)
        let result: Result<Void, StoreError> = await scheduler.withStopped(ids, order: .release, owner: owner) { _ in
            let leaving = ids.filter { moved[$0] != nil }
            guard !leaving.isEmpty else { return .success(()) }
            Self.removeParts(of: leaving, moved, owner: owner, settings, store.identity)
            do throws(StoreError) {
                // The byte count is reset again, since a run that was ending may have written its progress.
                return .success(try await store.forgetBytes(of: leaving))
            } catch {
                return .failure(error)
            }
        }
        try stored { () throws(StoreError) in try result.get() }
    }

    /// Ends the runs of tasks that are already stored as cancelled.
    private func stop(pruned ids: [TaskID], owner: UInt32, now: Milliseconds) async throws(QueueError) {
        let store = store
        let result: Result<Void, StoreError> = await scheduler.withStopped(ids, order: .release, owner: owner) { _ in
            do throws(StoreError) {
                // The cancellation is repeated, since a run that was ending by itself may have overwritten it.
                _ = try await store.apply(.cancel, to: ids, owner: owner, now: now)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try stored { () throws(StoreError) in try result.get() }
    }

    package func abortStagedBatch(_ stagedBatch: Int64, by caller: Caller) async throws(QueueError) {
        try await inStagedBatch { () async throws(StoreError) in
            try await store.abortStagedBatch(stagedBatch, owner: caller.uid)
        }
        stagedBatches.withLock { $0.lastCalls[stagedBatch] = nil }
        sweep()
    }

    /// Starts to delete the remains of finished staged batches in the background.
    func sweep() {
        guard
            stagedBatches.withLock({ register in
                defer { register.isSweeping = true }
                return !register.isSweeping
            })
        else { return }
        Task {
            // After an error, such as a full disk, the next staged batch triggers a new attempt.
            while (try? await store.sweep()) == true {}
            stagedBatches.withLock { $0.isSweeping = false }
        }
    }

    private func inStagedBatch<Value: Sendable>(
        _ body: @Sendable () async throws(StoreError) -> Value
    ) async throws(QueueError) -> Value {
        do throws(StoreError) {
            return try await body()
        } catch {
            if case .unknownStagedBatch = error { throw .field(FieldError(field: "queue", message: "\(error)")) }
            throw QueueError(error)
        }
    }
}

extension QueueError {
    /// The index and the field name in an error such as `entries[3].url`.
    private var entry: (index: Int, field: String, message: String, code: ErrorCode)? {
        guard case .field(let error) = self, error.field.hasPrefix("entries["),
            let close = error.field.firstIndex(of: "]"),
            let index = Int(error.field[..<close].dropFirst("entries[".count))
        else { return nil }
        return (index, String(error.field[close...].dropFirst(2)), error.message, error.code)
    }

    /// Returns the position of an entry's error in the file from which `entries` were read; `nil` where the error does
    /// not concern an entry.
    ///
    /// - Parameter file: the file name for the message.
    package func fault(in entries: [QueueEntry], of file: String) -> FileError? {
        guard let fault = entry, entries.indices.contains(fault.index) else { return nil }
        let entry = entries[fault.index]
        return FileError(
            file: file, line: entry.line, column: entry.column, code: fault.code,
            message: "\"\(QueueFile.key(ofField: fault.field))\": \(fault.message)")
    }

    fileprivate func movingEntries(by count: Int) -> QueueError {
        guard let entry else { return self }
        return .field(
            FieldError(
                field: "entries[\(entry.index + count)].\(entry.field)", code: entry.code, message: entry.message))
    }
}
