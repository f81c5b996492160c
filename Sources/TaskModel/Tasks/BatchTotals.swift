/// The totals of all tasks in one batch.
public struct BatchTotals: Sendable, Equatable {
    public var batch: String
    /// The number of tasks in each stored state. States without a task are absent.
    public var counts: [TaskState: Int]
    /// Bytes already downloaded or uploaded, summed over all tasks. A running task counts with its last checkpoint.
    public var bytesDone: Int64
    /// The total size in bytes; `nil` where the size of at least one task is unknown.
    public var bytesTotal: Int64?

    public init(batch: String, counts: [TaskState: Int], bytesDone: Int64, bytesTotal: Int64?) {
        self.batch = batch
        self.counts = counts
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
    }

    /// The outcome of the batch once all its tasks have ended: `failed` where at least one task failed, otherwise
    /// `cancelled` where at least one was cancelled, otherwise `completed`. `nil` before.
    public var outcome: TaskState? {
        let states = counts.filter { $0.value > 0 }.keys
        guard states.allSatisfy(\.isEnded) else { return nil }
        return [.failed, .cancelled, .completed].first(where: states.contains)
    }
}
