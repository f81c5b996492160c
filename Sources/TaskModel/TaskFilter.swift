/// Which tasks a command is about; every condition that is given must hold.
public struct TaskFilter: Codable, Sendable, Equatable {
    /// Any of these; absent or empty: every state.
    public var states: [TaskState]?
    public var batch: String?
    /// Part of the URL or the path, letter case ignored.
    public var search: String?
    /// A uid.
    public var owner: UInt32?
    /// Milliseconds since 1970: tasks that ended then or later, or, where they have not, were added then or later.
    public var since: Milliseconds?
    /// As ``since``: before that moment.
    public var until: Milliseconds?

    public init(
        states: [TaskState]? = nil, batch: String? = nil, search: String? = nil, owner: UInt32? = nil,
        since: Milliseconds? = nil, until: Milliseconds? = nil
    ) {
        self.states = states
        self.batch = batch
        self.search = search
        self.owner = owner
        self.since = since
        self.until = until
    }

    package enum CodingKeys: String, CodingKey, CaseIterable {
        case states, batch, search, owner, since, until
    }

    /// - Throws: ``FieldError`` for a key that is none: a condition left out by a slip of the pen would mean every task.
    public init(from decoder: any Decoder) throws {
        for key in try decoder.container(keyedBy: AnyKey.self).allKeys
        where CodingKeys(rawValue: key.stringValue) == nil {
            let nearest = NearestWord.to(key.stringValue, among: CodingKeys.allCases.map(\.rawValue))
            throw FieldError(
                field: "filter." + key.stringValue,
                message: "is not a condition of a filter" + (nearest.map { "; did you mean \($0)?" } ?? ""))
        }
        let container = try decoder.container(keyedBy: CodingKeys.self)
        states = try container.decodeIfPresent([TaskState].self, forKey: .states)
        batch = try container.decodeIfPresent(String.self, forKey: .batch)
        search = try container.decodeIfPresent(String.self, forKey: .search)
        owner = try container.decodeIfPresent(UInt32.self, forKey: .owner)
        since = try container.decodeIfPresent(Milliseconds.self, forKey: .since)
        until = try container.decodeIfPresent(Milliseconds.self, forKey: .until)
    }
}
