import TaskModel
import TaskStore

extension TaskQueue {
    /// Moves a task among those of its owner with its priority; durable when it returns. One that runs, runs on.
    ///
    /// - Returns: `nil` where no task has the id, or none that the caller may see.
    package func move(
        _ id: TaskID, _ placement: TaskPlacement, by caller: Caller
    ) async throws(QueueError) -> TaskStatus? {
        let now = clock.now()
        let outcome = try await stored { () async throws(StoreError) in
            try await store.move(id, placement, owner: caller.scope, now: now)
        }
        switch outcome {
        case .moved: await changed()
        case .unknown: return nil
        case .wrong(let error): throw .field(error)
        }
        return try await status(of: id, for: caller)
    }
}
