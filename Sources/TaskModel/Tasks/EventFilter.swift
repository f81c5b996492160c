/// A filter that selects the events of a subscription. All conditions that are given must hold. A gap is always
/// selected.
public struct EventFilter: Sendable, Equatable {
    /// The accepted types; `nil` accepts all that are in the journal.
    public var types: Set<TaskEvent.Kind>?
    /// The accepted tasks; `nil` accepts all.
    public var ids: Set<TaskID>?
    /// The accepted batch; `nil` accepts all, and tasks without a batch.
    public var batch: String?
    /// The owner's uid.
    public var owner: UInt32?
    /// The accepted states; `nil` accepts all. An event of a batch has the state of its outcome.
    public var states: Set<TaskState>?
    /// The accepted kind of tasks; `nil` accepts both, and the events of batches.
    public var kind: TaskKind?

    /// Creates a filter. A condition that is `nil` accepts everything.
    public init(
        types: Set<TaskEvent.Kind>? = nil, ids: Set<TaskID>? = nil, batch: String? = nil, owner: UInt32? = nil,
        states: Set<TaskState>? = nil, kind: TaskKind? = nil
    ) {
        self.types = types
        self.ids = ids
        self.batch = batch
        self.owner = owner
        self.states = states
        self.kind = kind
    }

    /// Whether events of running tasks' progress are selected.
    public var wantsProgress: Bool { types?.contains(.progress) ?? false }

    /// Returns whether an event meets every condition.
    public func selects(_ event: TaskEvent) -> Bool {
        if event.type == .gap { return true }
        guard types?.contains(event.type) ?? (event.type != .progress) else { return false }
        if let ids { guard let id = event.id, ids.contains(id) else { return false } }
        if let batch, event.batch != batch { return false }
        if let owner, event.owner != owner { return false }
        if let states { guard let state = event.state, states.contains(state) else { return false } }
        if let kind, event.kind != kind { return false }
        return true
    }
}
