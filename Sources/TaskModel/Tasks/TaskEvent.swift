/// A change of a task or a batch, with its sequence number in the event journal.
public struct TaskEvent: Sendable, Equatable {
    /// The type of an event.
    public enum Kind: String, Codable, Sendable, CaseIterable {
        /// The task was queued.
        case added
        /// The daemon contacts the server.
        case started
        /// The progress of a running task. It is not part of the journal, and only sent to subscribers that ask for it.
        case progress
        /// A user changed options of the task.
        case updated
        /// The task is paused, by a user or because it needs one; `reason` says why.
        case paused
        /// A user resumed the task.
        case resumed
        /// The task waits; `reason` says for what.
        case waiting
        /// The file is complete, or was sent.
        case completed
        /// The task failed and is not tried again by itself; `error` says why.
        case failed
        /// A user cancelled the task.
        case cancelled
        /// A user queued the task again.
        case retried
        /// The record of the task was deleted, by a user or because it was old.
        case removed
        /// The end of a batch's last task.
        case batchFinished = "batch-finished"
        /// A marker that earlier events are no longer in the journal.
        case gap

        /// Whether events of this type are recorded in the journal.
        public var isRecorded: Bool { self != .progress && self != .gap }
    }

    /// The sequence number. It increases with every event of the journal and continues across restarts. `progress` has
    /// that of the event before it.
    public var sequence: Int64
    /// The time of the event.
    public var at: Milliseconds
    /// The type.
    public var type: Kind
    /// The task; `nil` for `batch-finished` and `gap`.
    public var id: TaskID?
    /// The kind of the task.
    public var kind: TaskKind?
    /// The batch of the task, or the one that ended.
    public var batch: String?
    /// The client's own name for the task.
    public var key: String?
    /// The owner's uid; `nil` for `gap`.
    public var owner: UInt32?
    /// The URL, without its secrets.
    public var url: String?
    /// The absolute path of the file, or of an upload's source.
    public var path: String?
    /// The number of bytes on disk or sent, at the time of the event.
    public var bytesDone: Int64?
    /// The size in bytes; `nil` if it is unknown.
    public var bytesTotal: Int64?
    /// The state of the task after the event, or the outcome of a batch.
    public var state: TaskState?
    /// The reason of the state `waiting` or `paused`.
    public var reason: TaskReason?
    /// The last error of the task.
    public var error: TaskFailure?
    /// The current values of a running task; `nil` except for `progress`.
    public var progress: Progress?
    /// The result of a batch; `nil` except for `batch-finished`.
    public var totals: BatchResult?

    /// The current values of a running task.
    public struct Progress: Codable, Sendable, Equatable {
        /// The throughput in bytes per second.
        public var rate: Int64?
        /// The estimated remaining time in seconds.
        public var eta: Int64?
        /// The number of open connections.
        public var connections: Int

        /// Creates the values.
        public init(rate: Int64?, eta: Int64?, connections: Int) {
            self.rate = rate
            self.eta = eta
            self.connections = connections
        }

        private enum CodingKeys: String, CodingKey { case rate, eta, connections }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(rate, forKey: .rate)
            try container.encode(eta, forKey: .eta)
            try container.encode(connections, forKey: .connections)
        }
    }

    /// Creates an event without the facts of its task.
    public init(
        sequence: Int64, at: Milliseconds, type: Kind, id: TaskID? = nil, state: TaskState? = nil,
        reason: TaskReason? = nil, error: TaskFailure? = nil
    ) {
        self.sequence = sequence
        self.at = at
        self.type = type
        self.id = id
        self.state = state
        self.reason = reason
        self.error = error
    }
}

/// The numbers of a batch's tasks by their final state.
public struct BatchResult: Codable, Sendable, Equatable {
    /// `completed` if every task completed, otherwise `failed`, or `cancelled` if none failed.
    public var outcome: TaskState
    /// The number of completed tasks.
    public var completed: Int
    /// The number of failed tasks.
    public var failed: Int
    /// The number of cancelled tasks.
    public var cancelled: Int
    /// The sum of the tasks' bytes.
    public var bytesDone: Int64

    /// Creates the numbers, and derives the outcome from them.
    public init(completed: Int, failed: Int, cancelled: Int, bytesDone: Int64) {
        outcome = failed > 0 ? .failed : cancelled > 0 ? .cancelled : .completed
        self.completed = completed
        self.failed = failed
        self.cancelled = cancelled
        self.bytesDone = bytesDone
    }
}

extension TaskEvent: Codable {
    private enum CodingKeys: String, CodingKey {
        case sequence, at, type, id, kind, batch, key, owner, url, path, bytesDone, bytesTotal, state, reason, error
        case progress, totals
    }

    public func encode(to encoder: any Encoder) throws {
        // `encode` instead of `encodeIfPresent`, so that no field is ever missing.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(sequence, forKey: .sequence)
        try container.encode(at, forKey: .at)
        try container.encode(type, forKey: .type)
        try container.encode(id, forKey: .id)
        try container.encode(kind, forKey: .kind)
        try container.encode(batch, forKey: .batch)
        try container.encode(key, forKey: .key)
        try container.encode(owner, forKey: .owner)
        try container.encode(url, forKey: .url)
        try container.encode(path, forKey: .path)
        try container.encode(bytesDone, forKey: .bytesDone)
        try container.encode(bytesTotal, forKey: .bytesTotal)
        try container.encode(state, forKey: .state)
        try container.encode(reason, forKey: .reason)
        try container.encode(error, forKey: .error)
        try container.encode(progress, forKey: .progress)
        try container.encode(totals, forKey: .totals)
    }
}
