import TaskModel

/// The parameters of one method: an object whose every key is known.
public protocol MethodParameters: Codable, Sendable {
    static var keys: [String] { get }
}

/// `task.add`: all of them or none.
public struct TaskAddParameters: MethodParameters {
    public static let keys = ["tasks"]
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

/// `task.get`
public struct TaskGetParameters: MethodParameters {
    public static let keys = ["id"]
    public var id: TaskID

    public init(id: TaskID) { self.id = id }
}

/// `task.list`: a page of tasks, oldest first.
public struct TaskListParameters: MethodParameters {
    public static let keys = ["filter", "limit", "after", "newest"]
    public var filter: TaskFilter?
    /// The most tasks in this page; the server may send fewer.
    public var limit: Int?
    /// Only tasks with a larger id.
    public var after: TaskID?
    /// Begin with the first of the newest so many.
    public var newest: Int?

    public init(filter: TaskFilter? = nil, limit: Int? = nil, after: TaskID? = nil, newest: Int? = nil) {
        self.filter = filter
        self.limit = limit
        self.after = after
        self.newest = newest
    }
}

/// `task.count`: how many tasks a filter selects.
public struct TaskCountParameters: MethodParameters {
    public static let keys = ["filter"]
    /// Absent: every task that the caller may see.
    public var filter: TaskFilter?

    public init(filter: TaskFilter? = nil) { self.filter = filter }
}

/// `task.pause`, `task.resume`, `task.cancel`, `task.retry`, `task.remove`: by ids or by a filter.
public struct TaskSelectionParameters: MethodParameters {
    public static let keys = ["ids", "filter", "deleteFile"]
    public var ids: [TaskID]?
    /// `{}` selects every task that the caller may see.
    public var filter: TaskFilter?
    /// `task.remove` alone: delete the finished file too.
    public var deleteFile: Bool?

    public init(ids: [TaskID]? = nil, filter: TaskFilter? = nil, deleteFile: Bool? = nil) {
        self.ids = ids
        self.filter = filter
        self.deleteFile = deleteFile
    }
}

/// `task.update`: changes what tasks ask for; what was fetched stays.
///
/// With `id` the result is the task, with `ids` or a filter it is as of `task.pause`.
public struct TaskUpdateParameters: MethodParameters {
    public static let keys = ["id", "ids", "filter", "changes"]

    /// Whose changes they are.
    public enum Selection: Sendable, Equatable {
        case task(TaskID)
        case tasks([TaskID])
        /// The tasks that match, without completed and cancelled ones.
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
            throw FieldError(field: "id", message: "give one of id, ids and filter")
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

/// `task.move`: the task's place among those of its owner with its priority; one of `first`, `last` and `before`.
public struct TaskMoveParameters: MethodParameters {
    public static let keys = ["id", "first", "last", "before"]
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
            throw FieldError(field: "before", message: "give one of first, last and before")
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

/// `queue.begin`: opens a set of entries that is applied whole by `queue.commit`.
public struct QueueBeginParameters: MethodParameters {
    public static let keys = ["batch"]
    /// The batch to bring in line with the entries. Absent: every entry becomes a new task.
    public var batch: String?

    public init(batch: String? = nil) { self.batch = batch }
}

/// `queue.put`: at most 1,000 entries a call.
public struct QueuePutParameters: MethodParameters {
    public static let keys = ["queue", "entries"]
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

/// `queue.commit`
public struct QueueCommitParameters: MethodParameters {
    public static let keys = ["queue", "prune", "dryRun"]
    public var queue: Int64
    /// Cancel the batch's tasks that no entry names.
    public var prune: Bool?
    /// Say what would change and change nothing.
    public var dryRun: Bool?

    public init(queue: Int64, prune: Bool? = nil, dryRun: Bool? = nil) {
        self.queue = queue
        self.prune = prune
        self.dryRun = dryRun
    }
}

/// `queue.abort`
public struct QueueAbortParameters: MethodParameters {
    public static let keys = ["queue"]
    public var queue: Int64

    public init(queue: Int64) { self.queue = queue }
}

/// `daemon.limits`: bytes a second of all tasks together, in each direction. Without parameters nothing changes.
///
/// In JSON a number sets a limit, 0 takes every limit away, and `null` goes back to the configuration and its schedule.
/// What is set counts until it is changed, over restarts too.
public struct DaemonLimitsParameters: MethodParameters {
    public static let keys = ["download", "upload"]

    public enum Rate: Sendable, Equatable {
        /// Bytes a second.
        case limit(Int64)
        case unlimited
        /// What the configuration says.
        case configured
    }

    /// Absent, it stays as it is.
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
                    message: "must be bytes a second, 0 for no limit, or null for the configuration's")
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

/// `events.subscribe`
public struct EventsSubscribeParameters: MethodParameters {
    public static let keys = ["after", "types"]
    /// Replay what came after this sequence number. Absent: only what comes from now on.
    public var after: Int64?
    /// Only events of these types, and gaps. Absent: all.
    public var types: [TaskEvent.Kind]?

    public init(after: Int64? = nil, types: [TaskEvent.Kind]? = nil) {
        self.after = after
        self.types = types
    }
}

/// `source.receive`: the client passes open files (`SCM_RIGHTS`, unix(7)) for uploads of files to which the daemon has no
/// way of its own.
///
/// After the answer, and not before, it sends one LF with the descriptors of all of them in one message. The files are
/// numbered from 0 on, and `task.add` and `source.attach` on the same connection may name them, until the next
/// `source.receive`.
public struct SourceReceiveParameters: MethodParameters {
    public static let keys = ["count"]
    /// Files that one message may bring.
    public static let maximum = 250
    public var count: Int

    public init(count: Int) { self.count = count }
}

/// `source.attach`: passes the source of an upload anew (`source-lost`).
public struct SourceAttachParameters: MethodParameters {
    public static let keys = ["id", "descriptor"]
    public var id: TaskID
    /// Which file of the last `source.receive`.
    public var descriptor: Int

    public init(id: TaskID, descriptor: Int) {
        self.id = id
        self.descriptor = descriptor
    }
}

/// Methods that take none.
public struct NoParameters: MethodParameters {
    public static let keys: [String] = []
    public init() {}
}
