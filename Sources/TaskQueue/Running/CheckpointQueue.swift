import TaskModel

/// The queue of running tasks whose checkpoint is due, with a limit on concurrent checkpoints.
struct CheckpointQueue {
    /// The maximum number of concurrent checkpoints up to which due ones are started. Each takes some 10 KiB of memory.
    static let limit = 128
    /// The unsynced bytes after which a checkpoint is due.
    static let bytes: Int64 = 32 << 20
    /// The maximum number of bytes that a download may be ahead of its checkpoint.
    static let mostBytesAhead: Int64 = 64 << 20

    /// The tasks, the most urgent last.
    private var due: [TaskID] = []
    private(set) var underWay = 0

    /// Replaces the due tasks.
    ///
    /// - Parameter tasks: the tasks, with the monotonic time of their last checkpoint.
    mutating func set(_ tasks: [(id: TaskID, since: Milliseconds)]) {
        due = tasks.sorted { $0.since > $1.since }.map(\.id)
    }

    /// Dequeues the task whose checkpoint is to be started next; `nil` where there is none, or the limit is reached.
    mutating func next() -> TaskID? { underWay < Self.limit ? due.popLast() : nil }

    mutating func began() { underWay += 1 }

    mutating func ended() { underWay -= 1 }
}
