import TaskModel
import Transfer

/// The checkpoints of one run, of which at most one is being written at a time.
struct RunCheckpoints {
    /// The time after which written data is checkpointed, in milliseconds.
    static let interval: Milliseconds = 2_000

    /// The checkpoint in progress. The run's result is recorded after it.
    private(set) var current: Task<Void, Never>?
    /// The monotonic time of the last checkpoint, or of the start.
    private(set) var last: Milliseconds
    /// Whether the store refused the last checkpoint.
    private var needsRetry = false
    /// The encoder of the resume data.
    var encoder = ResumeDataEncoder()

    init(now: Milliseconds) { last = now }

    func isDue(now: Milliseconds) -> Bool { now - last >= Self.interval }

    /// Whether a checkpoint may begin.
    ///
    /// - Parameter hasNews: Whether bytes were written since the last checkpoint.
    func mayBegin(hasNews: Bool) -> Bool { current == nil && (hasNews || needsRetry) }

    /// Records the beginning of a checkpoint.
    ///
    /// - Parameter now: the monotonic time.
    mutating func begin(_ checkpoint: Task<Void, Never>, now: Milliseconds) {
        current = checkpoint
        last = now
    }

    /// Records the end of the checkpoint.
    mutating func end(isWritten: Bool) {
        current = nil
        needsRetry = !isWritten
    }
}
