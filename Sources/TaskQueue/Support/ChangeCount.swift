import Synchronization

/// A count of the changes to what the queue reports of itself as a whole: its tasks, limits and settings.
///
/// A report that was begun at the present count is up to date, except for rates and byte counts.
package final class ChangeCount: Sendable {
    private let count = Atomic<UInt64>(0)
    /// Whether anyone waits, so that a change need not take the lock.
    private let isAwaited = Atomic<Bool>(false)
    private let waiting = Mutex<(last: UInt64, continuations: [UInt64: CheckedContinuation<Void, Never>])>((0, [:]))

    package init() {}

    package var value: UInt64 { count.load(ordering: .acquiring) }

    /// Counts a change. Call this once the change is visible to a report that begins now.
    package func add() {
        count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        guard isAwaited.load(ordering: .sequentiallyConsistent) else { return }
        let continuations = waiting.withLock { waiting in
            isAwaited.store(false, ordering: .sequentiallyConsistent)
            defer { waiting.continuations = [:] }
            return Array(waiting.continuations.values)
        }
        for continuation in continuations { continuation.resume() }
    }

    /// Returns once the count differs from `seen`, or the task is cancelled.
    package func change(since seen: UInt64) async {
        let id = waiting.withLock { waiting in
            waiting.last &+= 1
            return waiting.last
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = waiting.withLock { waiting in
                    isAwaited.store(true, ordering: .sequentiallyConsistent)
                    let isDone = count.load(ordering: .sequentiallyConsistent) != seen || Task.isCancelled
                    if !isDone { waiting.continuations[id] = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            waiting.withLock { $0.continuations.removeValue(forKey: id) }?.resume()
        }
    }
}
