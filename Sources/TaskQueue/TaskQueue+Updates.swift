import TaskModel
import TaskStore

extension TaskQueue {
    /// Changes what a task asks for; durable when it returns. One that runs is stopped for it (but for another
    /// rate or priority), keeps its bytes, burns no attempt and goes on at once with what is asked now. Where that cannot be taken, it runs on undisturbed.
    ///
    /// - Returns: the task as it stands now; `nil` where no task has the id, or none that the caller may see.
    /// - Throws: the field at fault beneath `changes`; refused where the task is completed or cancelled.
    package func update(
        _ id: TaskID, by changes: TaskChanges, for caller: Caller
    ) async throws(QueueError) -> TaskStatus? {
        guard !changes.isEmpty else {
            let fields = TaskChanges.Field.allCases.map(\.rawValue).joined(separator: ", ")
            throw .field(FieldError(field: "changes", message: "is empty; give one or more of \(fields)"))
        }
        let (store, settings, now) = (store, settings, clock.now())
        let judge: TaskStore.Judge = { (asked, before, owner) throws(FieldError) in
            var admission = Admission(settings: settings, caller: caller, now: now)
            return try admission.readmit(asked, after: before, names: changes.isOfName, owner: owner)
        }
        let expected = try stored { () throws(StoreError) in
            try store.judgeUpdate(id, by: changes, owner: caller.scope, now: now, judge: judge)
        }
        guard try Self.changes(expected, id) else { return try await status(of: id, for: caller) }

        let write: @Sendable () async -> Result<UpdateOutcome, StoreError> = {
            do throws(StoreError) {
                return .success(
                    try await store.update(id, by: changes, owner: caller.scope, now: now, judge: judge))
            } catch {
                return .failure(error)
            }
        }
        let result: Result<UpdateOutcome, StoreError>
        if changes.areTakenUpAtOnce {
            result = await write()
            if case .success(.updated) = result, let limit = changes.limit {
                await scheduler.limit(id, to: limit.value)
            }
        } else {
            result = await scheduler.withStopped(
                [id], order: .release, owner: caller.scope, goesOnAtOnce: true
            ) { _ in await write() }
        }
        await changed()
        _ = try Self.changes(try stored { () throws(StoreError) in try result.get() }, id)
        return try await status(of: id, for: caller)
    }

    /// - Returns: whether there is something to write, or was.
    private static func changes(_ outcome: UpdateOutcome, _ id: TaskID) throws(QueueError) -> Bool {
        switch outcome {
        case .updated: return true
        // What is not there is told by its status.
        case .unchanged, .unknown: return false
        case .refused(let transition): throw .refused(.wrongState, "task \(id) \(transition)")
        case .wrong(let error):
            throw .field(FieldError(field: "changes.\(error.field)", code: error.code, message: error.message))
        }
    }
}
