/// A filter that selects the tasks of a command. All conditions that are given must hold.
public struct TaskFilter: Codable, Sendable, Equatable {
    /// The accepted states; `nil` accepts every state. The daemon refuses an empty list.
    public var states: [TaskState]?
    /// The accepted batch; `nil` accepts all, and tasks without a batch.
    public var batch: String?
    /// A part of the URL or the path, compared without regard to case; at most 1,024 bytes.
    public var search: String?
    /// The owner's uid.
    public var owner: UInt32?
    /// The earliest time, in milliseconds since 1970. It is compared with the time at which the task ended or, for a
    /// task that has not ended, with the time at which it was added.
    public var since: Milliseconds?
    /// The end of the period, exclusive. It is compared with the same time as ``since``.
    public var until: Milliseconds?

    /// The maximum number of bytes of ``search``.
    package static let maximumSearch = 1_024

    /// Creates a filter. A condition that is `nil` accepts everything.
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

    /// Decodes a filter.
    ///
    /// - Throws: ``FieldError`` for an unknown key, an empty list of states or a long text. A misspelt or forgotten condition would
    ///   otherwise be ignored and select every task.
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
        guard states?.isEmpty != true else {
            throw FieldError(field: "filter.states", message: "is empty; name a state, or leave it out for all states")
        }
        batch = try container.decodeIfPresent(String.self, forKey: .batch)
        search = try container.decodeIfPresent(String.self, forKey: .search)
        guard (search?.utf8.count ?? 0) <= Self.maximumSearch else {
            throw FieldError(field: "filter.search", message: "is longer than \(Self.maximumSearch) bytes")
        }
        owner = try container.decodeIfPresent(UInt32.self, forKey: .owner)
        since = try container.decodeIfPresent(Milliseconds.self, forKey: .since)
        until = try container.decodeIfPresent(Milliseconds.self, forKey: .until)
    }
}
