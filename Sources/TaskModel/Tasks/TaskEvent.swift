/// A change of a task, with its sequence number in the event journal.
public struct TaskEvent: Codable, Sendable, Equatable {
    public enum Kind: String, Codable, Sendable, CaseIterable {
        case added, updated, paused, resumed, waiting, completed, failed, cancelled, retried, removed
        /// A marker that earlier events are no longer in the journal.
        case gap
    }

    /// The sequence number. It increases with every event and continues across restarts.
    public var sequence: Int64
    public var at: Milliseconds
    public var type: Kind
    /// The task; `nil` for `gap`.
    public var id: TaskID?
    public var state: TaskState?
    public var reason: TaskReason?
    public var error: TaskFailure?

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

    private enum CodingKeys: String, CodingKey {
        case sequence, at, type, id, state, reason, error
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(sequence, forKey: .sequence)
        try container.encode(at, forKey: .at)
        try container.encode(type, forKey: .type)
        try container.encode(id, forKey: .id)
        try container.encode(state, forKey: .state)
        try container.encode(reason, forKey: .reason)
        try container.encode(error, forKey: .error)
    }
}
