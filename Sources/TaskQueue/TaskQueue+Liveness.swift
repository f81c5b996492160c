package import TaskModel
import TaskStore
import Transfer

/// Checks that the queue's parts work, for a watchdog. Each check returns once the part has finished its present work and
/// taken up more. If the part hangs, the check does not return.
extension TaskQueue {
    package func eventLoopsTurn() async {
        let session = await scheduler.manager.session
        await session.eventLoopsTurn()
    }

    package func schedulerTurn() async { await scheduler.turn() }

    package func databaseTurn() async { await store.writerTurn() }

    /// Returns the number of running tasks.
    package func runningCount() async -> Int { await scheduler.runningCount(owner: nil) }

    /// Returns the numbers of tasks of all users.
    package func totalCounts() async throws(QueueError) -> [TaskState: Int] { try await counts(for: Self.daemon) }
}
