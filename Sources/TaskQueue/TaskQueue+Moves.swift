package import TaskModel
import TaskStore

/// The result of a move.
package enum Moved: Sendable, Equatable {
    case moved(TaskStatus)
    case unknown(TaskID)
}

extension TaskQueue {
    /// Moves a task among the tasks of its owner with the same priority. The change is durable when the function
    /// returns. A running task continues to run.
    ///
    /// - Returns: the task, or the id of a task that does not exist or that the caller may not see.
    package func move(
        _ id: TaskID, _ placement: TaskPlacement, by caller: Caller
    ) async throws(QueueError) -> Moved {
        let now = clock.now()
        let outcome = try await stored { () async throws(StoreError) in
            try await store.move(id, placement, owner: caller.scope, now: now)
        }
        switch outcome {
        case .moved: await changed()
        case .unknown(let unknown): return .unknown(unknown)
        case .ended(let id, let state):
            throw .refused(.wrongState, "task \(id) is \(state.rawValue); only a task that has not ended can be moved")
        case .wrong(let error): throw .field(error)
        }
        guard let status = try await status(of: id, for: caller) else { return .unknown(id) }
        return .moved(status)
    }
}
