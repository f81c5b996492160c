/// What the tasks of a batch come to together.
public struct BatchTotals: Sendable, Equatable {
    public var batch: String
    /// Tasks by stored state; states without a task are absent.
    public var counts: [TaskState: Int]
    /// Bytes that are there, or were sent, of all its tasks; of what runs, those of its last checkpoint.
    public var bytesDone: Int64
    /// `nil` where the size of one of its tasks is not known.
    public var bytesTotal: Int64?

    public init(batch: String, counts: [TaskState: Int], bytesDone: Int64, bytesTotal: Int64?) {
        self.batch = batch
        self.counts = counts
        self.bytesDone = bytesDone
        self.bytesTotal = bytesTotal
    }

    /// Once each of its tasks has ended: `failed` where one failed, otherwise `cancelled` where one was, otherwise
    /// `completed`. `nil` before.
    public var outcome: TaskState? {
        let states = counts.filter { $0.value > 0 }.keys
        guard states.allSatisfy(\.isEnded) else { return nil }
        return [.failed, .cancelled, .completed].first(where: states.contains)
    }
}
