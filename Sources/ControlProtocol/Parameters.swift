public import TaskModel

/// The parameters of a method: an object in which every key must be known.
public protocol MethodParameters: Codable, Sendable {
    static var fields: [ParameterField] { get }
    /// The names of ``fields``.
    static var keys: [String] { get }
}

/// The parameters of `task.add`, which adds either all tasks or none.
public struct TaskAddParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var tasks: [TaskSpecification]

    public init(tasks: [TaskSpecification]) { self.tasks = tasks }

    private enum CodingKeys: String, CodingKey { case tasks }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard container.contains(.tasks) else { throw FieldError(field: "tasks", message: "is missing") }
        tasks = try SpecificationList.decode(from: container, .tasks)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try SpecificationList.encode(tasks, to: &container, .tasks)
    }
}

/// The parameters of `task.get`.
public struct TaskGetParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var id: TaskID

    public init(id: TaskID) { self.id = id }
}

/// The order of `task.list`.
public enum TaskListOrder: String, Codable, Sendable, CaseIterable {
    /// By id, the oldest task first.
    case id
    /// The queued tasks alone, in the order in which they will start.
    case queue
}

/// The parameters of `task.list`, which returns a page of tasks, oldest first.
public struct TaskListParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var filter: TaskFilter?
    /// The maximum number of tasks in this page; the daemon may send fewer.
    public var limit: Int?
    /// The id after which the page starts: only tasks with a larger id are returned or, in the order of the queue,
    /// those behind it.
    public var after: TaskID?
    /// The number of newest tasks with whose oldest the page starts.
    public var newest: Int?
    /// The order of the tasks; if absent, by id.
    public var order: TaskListOrder?

    public init(
        filter: TaskFilter? = nil, limit: Int? = nil, after: TaskID? = nil, newest: Int? = nil,
        order: TaskListOrder? = nil
    ) {
        self.filter = filter
        self.limit = limit
        self.after = after
        self.newest = newest
        self.order = order
    }
}

/// The parameters of `task.count`, which counts the tasks that a filter selects.
public struct TaskCountParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The filter; if absent, every task that the caller may see is counted.
    public var filter: TaskFilter?

    public init(filter: TaskFilter? = nil) { self.filter = filter }
}

/// The parameters of `task.pause`, `task.resume`, `task.cancel`, `task.retry` and `task.remove`: ids or a filter.
public struct TaskSelectionParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var ids: [TaskID]?
    /// The filter; `{}` selects every task that the caller may see.
    public var filter: TaskFilter?
    /// Whether to delete the finished file too; for `task.remove` only.
    public var deleteFile: Bool?
    /// Whether to start tasks before their start time and without their dependency; for `task.resume` only.
    public var now: Bool?

    public init(
        ids: [TaskID]? = nil, filter: TaskFilter? = nil, deleteFile: Bool? = nil, now: Bool? = nil
    ) {
        self.ids = ids
        self.filter = filter
        self.deleteFile = deleteFile
        self.now = now
    }
}

/// The parameters of `task.update`, which changes the specification of tasks and keeps the bytes received so far.
///
/// With `id` the result is the task. With `ids` or a filter it is the same as for `task.pause`.
public struct TaskUpdateParameters: MethodParameters {
    public static let keys = fields.map(\.name)

    /// The tasks to change.
    public enum Selection: Sendable, Equatable {
        case task(TaskID)
        case tasks([TaskID])
        /// The tasks that match the filter, except completed and cancelled ones.
        case matching(TaskFilter)
    }

    public var selection: Selection
    public var changes: TaskChanges

    public init(id: TaskID, changes: TaskChanges) {
        self.init(.task(id), changes: changes)
    }

    public init(_ selection: Selection, changes: TaskChanges) {
        self.selection = selection
        self.changes = changes
    }

    private enum CodingKeys: String, CodingKey { case id, ids, filter, changes }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let selections: [Selection] = [
            try container.decodeIfPresent(TaskID.self, forKey: .id).map { .task($0) },
            try container.decodeIfPresent([TaskID].self, forKey: .ids).map { .tasks($0) },
            try container.decodeIfPresent(TaskFilter.self, forKey: .filter).map { .matching($0) },
        ].compactMap(\.self)
        guard let selection = selections.first, selections.count == 1 else {
            throw FieldError(field: "id", message: "give exactly one of id, ids and filter")
        }
        self.selection = selection
        guard container.contains(.changes) else { throw FieldError(field: "changes", message: "is missing") }
        do {
            changes = try container.decode(TaskChanges.self, forKey: .changes)
        } catch let error as FieldError {
            throw FieldError(field: "changes.\(error.field)", code: error.code, message: error.message)
        } catch {
            throw FieldError(field: "changes", message: "must be an object")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch selection {
        case .task(let id): try container.encode(id, forKey: .id)
        case .tasks(let ids): try container.encode(ids, forKey: .ids)
        case .matching(let filter): try container.encode(filter, forKey: .filter)
        }
        try container.encode(changes, forKey: .changes)
    }
}

/// The parameters of `task.move`: the task's new position among the tasks of the same owner and priority, given by one
/// of `first`, `last` and `before`.
public struct TaskMoveParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var id: TaskID
    public var placement: TaskPlacement

    public init(id: TaskID, placement: TaskPlacement) {
        self.id = id
        self.placement = placement
    }

    private enum CodingKeys: String, CodingKey { case id, first, last, before }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(TaskID.self, forKey: .id)
        var placements: [TaskPlacement] = []
        if try container.decodeIfPresent(Bool.self, forKey: .first) ?? false { placements.append(.first) }
        if try container.decodeIfPresent(Bool.self, forKey: .last) ?? false { placements.append(.last) }
        if let id = try container.decodeIfPresent(TaskID.self, forKey: .before) { placements.append(.before(id)) }
        guard let placement = placements.first, placements.count == 1 else {
            throw FieldError(field: "before", message: "give exactly one of first, last and before")
        }
        self.placement = placement
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        switch placement {
        case .first: try container.encode(true, forKey: .first)
        case .last: try container.encode(true, forKey: .last)
        case .before(let id): try container.encode(id, forKey: .before)
        }
    }
}

/// The parameters of `queue.begin`, which opens a set of entries that `queue.commit` applies as a whole.
public struct QueueBeginParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The batch to synchronise with the entries; if absent, each entry becomes a new task.
    public var batch: String?

    public init(batch: String? = nil) { self.batch = batch }
}

/// The parameters of `queue.put`: at most 1,000 entries per call.
public struct QueuePutParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public static let maximumEntries = 1000
    public var queue: Int64
    public var entries: [TaskSpecification]

    public init(queue: Int64, entries: [TaskSpecification]) {
        self.queue = queue
        self.entries = entries
    }

    private enum CodingKeys: String, CodingKey { case queue, entries }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        queue = try container.decode(Int64.self, forKey: .queue)
        entries = try SpecificationList.decode(from: container, .entries)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(queue, forKey: .queue)
        try SpecificationList.encode(entries, to: &container, .entries)
    }
}

/// The parameters of `queue.commit`.
public struct QueueCommitParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var queue: Int64
    /// Whether to cancel the batch's tasks that no entry names.
    public var prune: Bool?
    /// Whether to only report the changes, without making them.
    public var dryRun: Bool?

    public init(queue: Int64, prune: Bool? = nil, dryRun: Bool? = nil) {
        self.queue = queue
        self.prune = prune
        self.dryRun = dryRun
    }
}

/// The parameters of `queue.abort`.
public struct QueueAbortParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var queue: Int64

    public init(queue: Int64) { self.queue = queue }
}

/// The parameters of `queue.list`, which returns a page of batches by name.
public struct QueueListParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The maximum number of batches in this page; the daemon may send fewer.
    public var limit: Int?
    /// The name after which the page starts.
    public var after: String?

    public init(limit: Int? = nil, after: String? = nil) {
        self.limit = limit
        self.after = after
    }
}

/// The parameters of `daemon.limits`: the rate limits of all tasks together, in bytes per second, for each direction.
/// Without parameters nothing changes.
///
/// In JSON a number sets a limit, 0 removes every limit, and `null` returns to the configuration and its schedule. A
/// limit stays in effect until it is changed, also after a restart.
public struct DaemonLimitsParameters: MethodParameters {
    public static let keys = fields.map(\.name)

    public enum Rate: Sendable, Equatable {
        /// A limit in bytes per second.
        case limit(Int64)
        case unlimited
        /// The limit of the configuration and its schedule.
        case configured
    }

    /// The new limit for downloads; if absent, it stays unchanged.
    public var download: Rate?
    public var upload: Rate?

    public init(download: Rate? = nil, upload: Rate? = nil) {
        self.download = download
        self.upload = upload
    }

    private enum CodingKeys: String, CodingKey { case download, upload }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func rate(_ key: CodingKeys) throws -> Rate? {
            guard container.contains(key) else { return nil }
            if try container.decodeNil(forKey: key) { return .configured }
            let value = try container.decode(Int64.self, forKey: key)
            guard value >= 0 else {
                throw FieldError(
                    field: key.rawValue,
                    message:
                        "must be a whole number of bytes per second, 0 for no limit, or null for the configured limit")
            }
            return value == 0 ? .unlimited : .limit(value)
        }
        download = try rate(.download)
        upload = try rate(.upload)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        for (key, rate) in [(CodingKeys.download, download), (.upload, upload)] {
            switch rate {
            case nil: break
            case .limit(let value): try container.encode(value, forKey: key)
            case .unlimited: try container.encode(0, forKey: key)
            case .configured: try container.encodeNil(forKey: key)
            }
        }
    }
}

/// The parameters of `events.subscribe`.
public struct EventsSubscribeParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The sequence number after which events are replayed.
    public var after: Int64?
    /// The name of the journal in which ``after`` was, from an earlier result. If the daemon has another journal since,
    /// because its database was lost or restored from a backup, the events start where the two journals differ, with a
    /// `gap`.
    public var journal: String?
    /// The time from which on events are replayed, in milliseconds since 1970. If ``after`` is absent too, only new
    /// events are sent.
    public var since: Milliseconds?
    /// The event types to send, in addition to gaps; if absent, all types except `progress` are sent.
    public var types: [TaskEvent.Kind]?
    /// The tasks whose events are sent; at most ``maximumIDs``.
    public var ids: [TaskID]?
    public var batch: String?
    /// The uid of the owner.
    public var owner: UInt32?
    /// The states of the events to send; the state of `batch-finished` is its outcome.
    public var states: [TaskState]?
    /// The kind of the tasks whose events are sent.
    public var kind: TaskKind?

    /// The maximum number of ids in a subscription.
    public static let maximumIDs = 10_000

    public init(
        after: Int64? = nil, journal: String? = nil, since: Milliseconds? = nil, filter: EventFilter = EventFilter()
    ) {
        self.after = after
        self.journal = journal
        self.since = since
        types = filter.types.map { $0.sorted { $0.rawValue < $1.rawValue } }
        ids = filter.ids?.sorted()
        batch = filter.batch
        owner = filter.owner
        states = filter.states.map { $0.sorted { $0.rawValue < $1.rawValue } }
        kind = filter.kind
    }

    public var filter: EventFilter {
        EventFilter(
            types: types.map(Set.init), ids: ids.map(Set.init), batch: batch, owner: owner,
            states: states.map(Set.init),
            kind: kind)
    }
}

/// The parameters of `events.list`, which returns a page of the journal, oldest event first.
public struct EventsListParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The start and the filter, as for a subscription. Without a start the page begins with the oldest event.
    public var selection: EventsSubscribeParameters
    /// The maximum number of events in this page; the daemon may send fewer.
    public var limit: Int?

    public init(selection: EventsSubscribeParameters = EventsSubscribeParameters(), limit: Int? = nil) {
        self.selection = selection
        self.limit = limit
    }

    private enum CodingKeys: String, CodingKey { case limit }

    public init(from decoder: any Decoder) throws {
        selection = try EventsSubscribeParameters(from: decoder)
        limit = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Int.self, forKey: .limit)
    }

    public func encode(to encoder: any Encoder) throws {
        try selection.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(limit, forKey: .limit)
    }
}

/// The parameters of `source.receive`, with which the client passes open files (`SCM_RIGHTS`, unix(7)) for uploads of
/// files that the daemon cannot open itself.
///
/// After the response, and not before, the client sends one LF with the descriptors of all files in one message. The
/// files are numbered from 0. `task.add` and `source.attach` on the same connection can refer to them until the next
/// `source.receive`.
public struct SourceReceiveParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The maximum number of files in one message.
    public static let maximum = 250
    public var count: Int

    public init(count: Int) { self.count = count }
}

/// The parameters of `source.attach`, which passes the source of an upload again (`source-lost`).
public struct SourceAttachParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public var id: TaskID
    /// The index of a file of the last `source.receive`.
    public var descriptor: Int

    public init(id: TaskID, descriptor: Int) {
        self.id = id
        self.descriptor = descriptor
    }
}

/// The parameters of `backup.read`, which returns a part of the copy that `daemon.backup` made on the same connection.
public struct BackupReadParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    /// The maximum number of bytes in one part.
    public static let partSize = 512 << 10
    /// The position of the first byte.
    public var offset: Int64

    public init(offset: Int64) { self.offset = offset }
}

/// The parameters of methods that take none.
public struct NoParameters: MethodParameters {
    public static let keys = fields.map(\.name)
    public init() {}
}
