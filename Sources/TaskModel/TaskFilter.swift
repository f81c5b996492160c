/// Which tasks a command is about; every condition that is given must hold.
public struct TaskFilter: Codable, Sendable, Equatable {
    /// Any of these; absent or empty: every state.
    public var states: [TaskState]?
    public var batch: String?
    /// Part of the URL or the path, letter case ignored.
    public var search: String?
    /// A uid.
    public var owner: UInt32?

    public init(states: [TaskState]? = nil, batch: String? = nil, search: String? = nil, owner: UInt32? = nil) {
        self.states = states
        self.batch = batch
        self.search = search
        self.owner = owner
    }
}
