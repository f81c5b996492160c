import TaskModel
import TaskStore

/// What applying a set came to, or would.
package struct SetChanges: Sendable, Equatable {
    package var added: Int
    package var updated: Int
    package var unchanged: Int
    package var pruned: Int
    /// The numbers of the added tasks, in the order of the entries.
    package var ids: [ClosedRange<Int64>]
}

/// Sets of entries that are applied whole: what a queue file becomes.
extension TaskQueue {
    /// - Parameter batch: the batch to bring in line with the entries; `nil`: every entry becomes a new task.
    /// - Returns: the set's number.
    package func beginSet(batch: String?, by caller: Caller) async throws(QueueError) -> Int64 {
        if let batch {
            var probe = TaskSpecification(url: "http://localhost/")
            probe.batch = batch
            do throws(FieldError) { try probe.check() } catch { throw .field(error) }
        }
        return try await stored { () async throws(StoreError) in
            try await store.beginSet(owner: caller.uid, batch: batch)
        }
    }

    /// - Returns: the entries in the set so far.
    package func put(_ set: Int64, _ entries: [TaskSpecification], by caller: Caller) async throws(QueueError) -> Int {
        let tasks = try admit(entries, by: caller, list: "entries", now: clock.now())
        let count = try await inSet { () async throws(StoreError) in
            try await store.put(set, tasks, owner: caller.uid)
        }
        try checkQuota(of: caller, adding: count)
        return count
    }

    package func commitSet(
        _ set: Int64, prune: Bool, dryRun: Bool, by caller: Caller
    ) async throws(QueueError) -> SetChanges {
        let now = clock.now()
        let outcome = try await inSet { () async throws(StoreError) in
            try await store.commitSet(set, owner: caller.uid, prune: prune, dryRun: dryRun, now: now)
        }
        let changes = SetChanges(
            added: outcome.added, updated: outcome.updated, unchanged: outcome.unchanged, pruned: outcome.pruned,
            ids: outcome.idRanges)
        guard !dryRun else { return changes }
        note(added: outcome.added, by: caller.uid)
        for part in Self.parts(of: outcome.cancelled) { try await stop(pruned: part, owner: caller.uid, now: now) }
        // What runs begins again with what the entry says now.
        for part in Self.parts(of: outcome.changed) {
            try await restart(part, moved: outcome.moved, owner: caller.uid)
        }
        await changed()
        return changes
    }

    /// - Parameter moved: what was asked before of those that now belong in another directory.
    private func restart(
        _ ids: [TaskID], moved: [TaskID: TaskSpecification], owner: UInt32
    ) async throws(QueueError) {
        let (store, settings) = (store, settings)
        let result: Result<Void, StoreError> = await scheduler.withStopped(ids, order: .release, owner: owner) { _ in
            let leaving = ids.filter { moved[$0] != nil }
            guard !leaving.isEmpty else { return .success(()) }
            for id in leaving {
                if let before = moved[id] { Self.removePart(of: id, before, settings: settings, store.identity) }
            }
            do throws(StoreError) {
                // Once more: a run that was ending wrote down how far it had come.
                return .success(try await store.forgetBytes(of: leaving))
            } catch {
                return .failure(error)
            }
        }
        try stored { () throws(StoreError) in try result.get() }
    }

    /// Ends the runs of tasks that are stored as cancelled already.
    private func stop(pruned ids: [TaskID], owner: UInt32, now: Milliseconds) async throws(QueueError) {
        let store = store
        let result: Result<Void, StoreError> = await scheduler.withStopped(ids, order: .release, owner: owner) { _ in
            do throws(StoreError) {
                // Once more: a run that was ending by itself may have written over it.
                _ = try await store.apply(.cancel, to: ids, owner: owner, now: now)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try stored { () throws(StoreError) in try result.get() }
    }

    package func abortSet(_ set: Int64, by caller: Caller) async throws(QueueError) {
        try await inSet { () async throws(StoreError) in try await store.abortSet(set, owner: caller.uid) }
    }

    private func inSet<Value: Sendable>(
        _ body: @Sendable () async throws(StoreError) -> Value
    ) async throws(QueueError) -> Value {
        do throws(StoreError) {
            return try await body()
        } catch {
            if case .unknownSet = error { throw .field(FieldError(field: "queue", message: "\(error)")) }
            throw .store(error)
        }
    }
}
