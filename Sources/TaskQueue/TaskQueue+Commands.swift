import Logging
package import TaskModel
import TaskStore
import Transfer

/// The result of a command on several tasks.
package struct ChangeOutcome: Sendable {
    package struct Refusal: Sendable {
        package enum Reason: Sendable {
            /// The task id is unknown, or the caller may not see the task that has it.
            case unknown
            case transition(IllegalTransition)
            /// The task was removed, but not its file.
            case keptFile(KeptFile)
            /// A field of the change is invalid for the task.
            case field(FieldError)
        }

        package var id: TaskID
        package var reason: Reason
    }

    package var changed = 0
    package var refused: [Refusal] = []
    /// The hosts whose hold ended because tasks were resumed.
    package var hosts: Set<String> = []

    fileprivate mutating func add(_ other: ChangeOutcome) {
        changed += other.changed
        refused += other.refused
        hosts.formUnion(other.hosts)
    }

    /// The maximum number of refusals of a command that selects its tasks by a filter, of which there may be a million.
    private static let mostRefusals = 1_000

    mutating func dropFurtherRefusals() {
        if refused.count > Self.mostRefusals { refused.removeLast(refused.count - Self.mostRefusals) }
    }
}

extension TaskQueue {
    /// Applies `pause`, `resume`, `resumeNow`, `cancel` or `retry` to tasks.
    package func apply(
        _ event: TaskLifecycle.Event, to ids: [TaskID], by caller: Caller
    ) async throws(QueueError) -> ChangeOutcome {
        var outcome = ChangeOutcome()
        for part in Self.parts(of: ids) {
            outcome.add(try await apply(event, toPart: part, by: caller))
        }
        return outcome
    }

    /// Applies an event to every task that matches, like ``apply(_:to:by:)``. Tasks in a state that does not allow the
    /// event are skipped, and so are completed ones by `retry`, unless the filter names their state.
    package func apply(
        _ event: TaskLifecycle.Event, toTasksMatching filter: TaskFilter, by caller: Caller
    ) async throws(QueueError) -> ChangeOutcome {
        var outcome = ChangeOutcome()
        let width = TaskPauses.width(of: filter)
        var filter = filter
        if event == .retry, filter.states == nil { filter.states = TaskState.allCases.filter { $0 != .completed } }
        try await eachPart(matching: filter, by: caller) { ids throws(QueueError) in
            var part = try await apply(event, toPart: ids, by: caller, width: width)
            part.refused = []
            outcome.add(part)
        }
        return outcome
    }

    /// Removes tasks with their part files.
    ///
    /// - Parameter deletesFiles: Whether to remove the finished files as well.
    package func remove(
        _ ids: [TaskID], deletesFiles: Bool, by caller: Caller
    ) async throws(QueueError) -> ChangeOutcome {
        var outcome = ChangeOutcome()
        for part in Self.parts(of: ids) {
            let (removed, kept) = try await remove(part: part, deletesFiles: deletesFiles, by: caller)
            outcome.changed += removed.count
            outcome.refused += part.filter { !removed.contains($0) }.map { .init(id: $0, reason: .unknown) } + kept
        }
        return outcome
    }

    package func remove(
        matching filter: TaskFilter, deletesFiles: Bool, by caller: Caller
    ) async throws(QueueError) -> ChangeOutcome {
        var outcome = ChangeOutcome()
        // What keeps a batch open goes last, as within one part.
        let ended = (filter.states ?? TaskState.allCases).filter(\.isEnded)
        for states in [ended, filter.states] where states?.isEmpty != true {
            var filter = filter
            filter.states = states
            try await eachPart(matching: filter, by: caller) { ids throws(QueueError) in
                let (removed, kept) = try await remove(part: ids, deletesFiles: deletesFiles, by: caller)
                outcome.changed += removed.count
                outcome.refused += kept
                outcome.dropFurtherRefusals()
            }
        }
        // The removal of a whole batch also resets its queue file, so that its entries start again.
        if let batch = filter.batch, filter == TaskFilter(batch: batch, owner: filter.owner) {
            try await stored { () async throws(StoreError) in
                try await store.forgetPastEntries(batch: batch, owner: caller.scope ?? filter.owner)
            }
        }
        return outcome
    }

    /// Removes tasks that ended long ago. Their files are kept, and their entries in a queue file count as completed.
    func removeExpired(_ ids: [TaskID]) async throws(QueueError) {
        for part in Self.parts(of: ids) {
            _ = try await remove(part: part, deletesFiles: false, by: Self.daemon, keepsEntries: true)
        }
    }

    // MARK: Parts of one commit

    /// The maximum number of tasks processed at once, in one commit where the tasks are small.
    static let partSize = 5_000

    static func parts(of ids: [TaskID]) -> [[TaskID]] {
        stride(from: 0, to: ids.count, by: partSize).map { Array(ids[$0..<min($0 + partSize, ids.count)]) }
    }

    func eachPart(
        matching filter: TaskFilter, by caller: Caller, _ body: ([TaskID]) async throws(QueueError) -> Void
    ) async throws(QueueError) {
        var after: TaskID?
        while true {
            let running = await onSharedThreads { await scheduler.runningIDs }
            let ids = try stored { () throws(StoreError) in
                try store.ids(
                    matching: filter, owner: caller.scope, running: running, after: after, limit: Self.partSize)
            }
            guard let last = ids.last else { return }
            try await body(ids)
            after = last
        }
    }

    private func apply(
        _ event: TaskLifecycle.Event, toPart ids: [TaskID], by caller: Caller, width: TaskPauses = .single
    ) async throws(QueueError) -> ChangeOutcome {
        // This check comes first, so that no task is stopped for a command that the store refuses.
        try stored { () throws(StoreError) in try self.store.checkAcceptsChanges() }
        let (store, now) = (store, clock.now())
        let write: @Sendable (Set<TaskID>) async -> Result<CommandOutcome, StoreError> = { stopped in
            do throws(StoreError) {
                return .success(
                    try await store.apply(
                        event, to: ids, owner: caller.scope, width: width, stopped: stopped, now: now))
            } catch {
                return .failure(error)
            }
        }
        var stopped: Set<TaskID> = []
        let result: Result<CommandOutcome, StoreError>
        switch event {
        case .pause, .cancel:
            let order: RunOutcomePolicy.Order = event == .pause ? .pause : .cancel
            (stopped, result) = await scheduler.withStopped(ids, order: order, owner: caller.scope) { stopped in
                (stopped, await write(stopped))
            }
        default: result = await write([])
        }
        var hosts: [String] = []
        if case .success(let outcome) = result {
            let changed = Self.changed(outcome, stopped)
            hosts = await onSharedThreads { [scheduler] in
                if event == .cancel { await scheduler.endDelays(causedBy: changed) }
                return outcome.hastened.isEmpty ? [] : await scheduler.endHolds(of: outcome.hastened)
            }
            log(event, changed, hosts, by: caller)
        }
        await changed()
        let outcome = try stored { () throws(StoreError) in try result.get() }
        let changed = Self.changed(outcome, stopped)
        return ChangeOutcome(
            changed: changed.count,
            refused: outcome.refused.map { .init(id: $0.0, reason: .transition($0.1)) }
                + outcome.unknown.map { .init(id: $0, reason: .unknown) }, hosts: Set(hosts))
    }

    /// Returns the tasks that a command changed. Those that were running have been changed by the conclusion of their
    /// run, unless they completed just before.
    private static func changed(_ outcome: CommandOutcome, _ stopped: Set<TaskID>) -> Set<TaskID> {
        Set(outcome.changed).union(stopped.subtracting(outcome.refused.map(\.0)))
    }

    private func log(_ event: TaskLifecycle.Event, _ ids: Set<TaskID>, _ hosts: [String], by caller: Caller) {
        switch event {
        case .pause: logger.log(CommandLog(.paused, "paused", ids).by(caller))
        case .resume, .resumeNow:
            logger.log(CommandLog(.resumed, "resumed", ids).by(caller))
            if !hosts.isEmpty {
                logger.info(
                    "a resumption ended holds of hosts", metadata: ["hosts": "\(hosts)", "caller": "\(caller.uid)"])
            }
        case .cancel: logger.log(CommandLog(.cancelled, "cancelled", ids).by(caller))
        case .retry: logger.log(CommandLog(.retried, "queued again", ids).by(caller))
        default: break
        }
    }

    private func remove(
        part ids: [TaskID], deletesFiles: Bool, by caller: Caller, keepsEntries: Bool = false
    ) async throws(QueueError) -> (removed: Set<TaskID>, kept: [ChangeOutcome.Refusal]) {
        // This check comes first, so that no part file is removed whose task would remain.
        try stored { () throws(StoreError) in try self.store.checkAcceptsChanges() }
        let result: Result<Removed, StoreError> = await scheduler.withStopped(
            ids, order: .remove, owner: caller.scope
        ) { [self] _ in
            await placesOfParts.withLock { [self] in
                await erase(ids, deletesFiles: deletesFiles, by: caller, keepsEntries: keepsEntries)
            }
        }
        if case .success(let removal) = result {
            let command = CommandLog(.removed, keepsEntries ? "removed from the history" : "removed", removal.tasks.ids)
            // Tasks leave the history all the time.
            logger.log(keepsEntries ? command : command.by(caller), keepsEntries ? .debug : .info)
        }
        if case .success(let removal) = result {
            await onSharedThreads { [scheduler] in await scheduler.endDelays(causedBy: removal.tasks.ids) }
        }
        await changed()
        let (removed, kept) = try stored { () throws(StoreError) in try result.get() }
        await onSharedThreads { await scheduler.quotaChanged(for: removed.ownersOfBytes) }
        return (Set(removed.ids), kept)
    }

    private typealias Removed = (tasks: RemovedTasks, kept: [ChangeOutcome.Refusal])

    private func erase(
        _ ids: [TaskID], deletesFiles: Bool, by caller: Caller, keepsEntries: Bool
    ) async -> Result<Removed, StoreError> {
        let (now, settings) = (clock.now(), settings)
        do throws(StoreError) {
            var kept: [ChangeOutcome.Refusal] = []
            var remover = TaskFileRemover(settings: settings, identity: store.identity)
            // The files are removed and the removal synced before the records are removed. A part file without a task
            // would stay for ever; a task without a part file merely restarts from the beginning.
            try store.forEachRecord(of: ids, owner: caller.scope) { record in
                remover.removePart(of: record)
                guard deletesFiles, let file = remover.removeFile(of: record) else { return }
                kept.append(.init(id: record.id, reason: .keptFile(file)))
            }
            remover.finish()
            let removed = try await store.remove(
                ids, owner: caller.scope, keepsEntries: keepsEntries, quota: settings.quota, now: now)
            await leftoverParts.enqueue(removed.places)
            return .success((removed, kept))
        } catch {
            return .failure(error)
        }
    }
}
