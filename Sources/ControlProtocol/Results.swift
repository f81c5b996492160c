public import TaskModel

/// The result of `task.add`.
public struct TaskAddResult: Codable, Sendable, Equatable {
    /// The tasks' ids, in the order of the tasks given.
    public var ids: [TaskID]
    /// The ``ids`` of tasks that already existed: their owner has a task with the same key, so nothing was added.
    public var found: [TaskID]
    /// Warnings about contents of the tasks that are passed over.
    public var notes: [String]

    public init(ids: [TaskID], found: [TaskID] = [], notes: [String] = []) {
        self.ids = ids
        self.found = found
        self.notes = notes
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        ids = try container.decode([TaskID].self, forKey: .ids)
        // A daemon of an earlier version does not send this field.
        found = try container.decodeIfPresent([TaskID].self, forKey: .found) ?? []
        notes = try container.decodeIfPresent([String].self, forKey: .notes) ?? []
    }
}

/// The result of `task.list`.
public struct TaskListResult: Codable, Sendable, Equatable {
    public var tasks: [TaskStatus]
    /// The value to pass as `after` for the next page; `null` at the end.
    public var next: TaskID?
    /// Whether the caller may see tasks of more than one owner, and there are some; `nil` from a daemon that does not
    /// report it.
    public var severalOwners: Bool?

    public init(tasks: [TaskStatus], next: TaskID?, severalOwners: Bool? = nil) {
        self.tasks = tasks
        self.next = next
        self.severalOwners = severalOwners
    }

    private enum CodingKeys: String, CodingKey { case tasks, next, severalOwners }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(tasks, forKey: .tasks)
        try container.encode(next, forKey: .next)
        try container.encode(severalOwners, forKey: .severalOwners)
    }
}

/// The result of `task.count`.
public struct TaskCountResult: Codable, Sendable, Equatable {
    /// The number of tasks of one owner.
    public struct Owner: Codable, Sendable, Equatable {
        /// The owner's uid.
        public var owner: UInt32
        public var tasks: Int

        public init(owner: UInt32, tasks: Int) {
            self.owner = owner
            self.tasks = tasks
        }
    }

    public var tasks: Int
    /// The counts by owner, ordered by uid; owners without a task are omitted.
    public var owners: [Owner]

    public init(owners: [Owner]) {
        tasks = owners.reduce(0) { $0 + $1.tasks }
        self.owners = owners
    }
}

/// The result of `task.pause` and the other methods that act on a selection of tasks.
public struct TaskChangeResult: Codable, Sendable, Equatable {
    public struct Refusal: Codable, Sendable, Equatable {
        public var id: TaskID
        public var code: ErrorCode
        public var message: String

        public init(id: TaskID, code: ErrorCode, message: String) {
            self.id = id
            self.code = code
            self.message = message
        }
    }

    public var changed: Int
    /// The tasks that could not be changed, and the removed tasks whose file was kept because it no longer belongs to
    /// them. All other selected tasks were changed.
    public var errors: [Refusal]
    /// The hosts whose hold ended, so that they are contacted at once; only after a resumption that ended one.
    public var hosts: [String]?

    public init(changed: Int, errors: [Refusal] = [], hosts: [String]? = nil) {
        self.changed = changed
        self.errors = errors
        self.hosts = hosts
    }
}

/// The result of `queue.begin`.
public struct QueueBeginResult: Codable, Sendable, Equatable {
    public var queue: Int64

    public init(queue: Int64) { self.queue = queue }
}

/// The result of `queue.put`.
public struct QueuePutResult: Codable, Sendable, Equatable {
    /// The number of entries in the set so far.
    public var entries: Int

    public init(entries: Int) { self.entries = entries }
}

/// The result of `queue.commit`.
public struct QueueCommitResult: Codable, Sendable, Equatable {
    public var added: Int
    public var updated: Int
    public var unchanged: Int
    /// The number of ended tasks whose file is fetched again if it changed.
    public var checked: Int
    public var pruned: Int
    /// The ids of the added tasks as ranges `[first, last]`, in the order of the entries.
    public var ids: [[TaskID]]
    /// The changes of a dry run, at most a thousand; `null` for a commit.
    public var changes: [Change]?

    /// A change that a dry run found.
    public struct Change: Codable, Sendable, Equatable {
        public enum Action: String, Codable, Sendable { case add, update, prune }

        public var action: Action
        /// The existing task; `null` for a task that would be added.
        public var id: TaskID?
        public var kind: TaskKind
        /// The URL, without its secrets.
        public var url: String
        public var output: String?
        /// The fields that an update changes; empty for the other actions.
        public var fields: [FieldDifference]

        public init(
            action: Action, id: TaskID?, kind: TaskKind, url: String, output: String?, fields: [FieldDifference]
        ) {
            self.action = action
            self.id = id
            self.kind = kind
            self.url = url
            self.output = output
            self.fields = fields
        }

        private enum CodingKeys: String, CodingKey { case action, id, kind, url, output, fields }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(action, forKey: .action)
            try container.encode(id, forKey: .id)
            try container.encode(kind, forKey: .kind)
            try container.encode(url, forKey: .url)
            try container.encode(output, forKey: .output)
            try container.encode(fields, forKey: .fields)
        }
    }

    public init(
        added: Int, updated: Int, unchanged: Int, checked: Int = 0, pruned: Int, ids: [[TaskID]],
        changes: [Change]? = nil
    ) {
        self.added = added
        self.updated = updated
        self.unchanged = unchanged
        self.checked = checked
        self.pruned = pruned
        self.ids = ids
        self.changes = changes
    }

    private enum CodingKeys: String, CodingKey { case added, updated, unchanged, checked, pruned, ids, changes }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        added = try container.decode(Int.self, forKey: .added)
        updated = try container.decode(Int.self, forKey: .updated)
        unchanged = try container.decode(Int.self, forKey: .unchanged)
        // A daemon of an earlier version does not send this field.
        checked = try container.decodeIfPresent(Int.self, forKey: .checked) ?? 0
        pruned = try container.decode(Int.self, forKey: .pruned)
        ids = try container.decode([[TaskID]].self, forKey: .ids)
        changes = try container.decodeIfPresent([Change].self, forKey: .changes)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(added, forKey: .added)
        try container.encode(updated, forKey: .updated)
        try container.encode(unchanged, forKey: .unchanged)
        try container.encode(checked, forKey: .checked)
        try container.encode(pruned, forKey: .pruned)
        try container.encode(ids, forKey: .ids)
        try container.encode(changes, forKey: .changes)
    }
}

/// The result of `queue.list`: a page of the batches that have tasks, by name.
public struct QueueListResult: Codable, Sendable, Equatable {
    public struct Batch: Codable, Sendable, Equatable {
        public var batch: String
        /// The number of tasks by state; states without a task are absent.
        public var tasks: [String: Int]
        /// The bytes transferred by all tasks of the batch; for running tasks, as of their last checkpoint.
        public var bytesDone: Int64
        /// The total size; `null` if the size of any of its tasks is unknown.
        public var bytesTotal: Int64?
        /// `completed`, `failed` or `cancelled` once every task has ended; `null` before.
        public var outcome: TaskState?

        public init(
            batch: String, tasks: [String: Int], bytesDone: Int64, bytesTotal: Int64?, outcome: TaskState?
        ) {
            self.batch = batch
            self.tasks = tasks
            self.bytesDone = bytesDone
            self.bytesTotal = bytesTotal
            self.outcome = outcome
        }

        private enum CodingKeys: String, CodingKey { case batch, tasks, bytesDone, bytesTotal, outcome }

        public func encode(to encoder: any Encoder) throws {
            // `encode` instead of `encodeIfPresent`: every field is present in the output, with `null` for `nil`.
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(batch, forKey: .batch)
            try container.encode(tasks, forKey: .tasks)
            try container.encode(bytesDone, forKey: .bytesDone)
            try container.encode(bytesTotal, forKey: .bytesTotal)
            try container.encode(outcome, forKey: .outcome)
        }
    }

    public var batches: [Batch]
    /// The name after which the next page starts; `null` at the end.
    public var next: String?

    public init(batches: [Batch], next: String? = nil) {
        self.batches = batches
        self.next = next
    }

    private enum CodingKeys: String, CodingKey { case batches, next }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(batches, forKey: .batches)
        try container.encode(next, forKey: .next)
    }
}

/// The result of `daemon.limits`: the limits now in effect.
public struct DaemonLimits: Codable, Sendable, Equatable {
    /// The download limit in bytes per second; `null` for no limit.
    public var download: Int64?
    public var upload: Int64?
    /// The origin of the limit: `command`, `schedule` or `configuration`.
    public var downloadSource: String
    public var uploadSource: String

    public init(download: Int64?, upload: Int64?, downloadSource: String, uploadSource: String) {
        self.download = download
        self.upload = upload
        self.downloadSource = downloadSource
        self.uploadSource = uploadSource
    }

    private enum CodingKeys: String, CodingKey { case download, upload, downloadSource, uploadSource }

    public func encode(to encoder: any Encoder) throws {
        // `encode` instead of `encodeIfPresent`: every field is present in the output, with `null` for `nil`.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(download, forKey: .download)
        try container.encode(upload, forKey: .upload)
        try container.encode(downloadSource, forKey: .downloadSource)
        try container.encode(uploadSource, forKey: .uploadSource)
    }
}

/// The result of `daemon.reload`.
public struct DaemonReloadResult: Codable, Sendable, Equatable {
    public var ok = true
    /// Notes for the user: settings that take effect only at the next start, and queue files that could not be applied.
    public var notes: [String]

    public init(notes: [String]) { self.notes = notes }
}

/// The result of `daemon.backup`: the copy of the database that the daemon holds for the connection.
public struct DaemonBackupResult: Codable, Sendable, Equatable {
    /// The size of the copy.
    public var bytes: Int64
    /// The number of tasks in it.
    public var tasks: Int
    /// The sequence number of the newest event in it.
    public var lastEvent: Int64
    /// The name of the event journal that the copy begins.
    public var journal: String

    public init(bytes: Int64, tasks: Int, lastEvent: Int64, journal: String) {
        self.bytes = bytes
        self.tasks = tasks
        self.lastEvent = lastEvent
        self.journal = journal
    }
}

/// The result of `backup.read`.
public struct BackupReadResult: Codable, Sendable, Equatable {
    /// A part of the copy in base64 (RFC 4648, section 4).
    public var data: String
    /// The position after this part; `nil` if it is the last one.
    public var next: Int64?

    public init(data: String, next: Int64?) {
        self.data = data
        self.next = next
    }

    private enum CodingKeys: String, CodingKey { case data, next }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(data, forKey: .data)
        try container.encode(next, forKey: .next)
    }
}

/// The result of `events.list`.
public struct EventsListResult: Codable, Sendable, Equatable {
    public var events: [TaskEvent]
    /// The sequence number after which the next page starts; `nil` if this is the end of the journal.
    public var next: Int64?
    /// The sequence number of the newest event.
    public var last: Int64
    /// The name of the journal (see ``EventsSubscribeParameters/journal``); `nil` from a daemon that has none.
    public var journal: String?

    public init(events: [TaskEvent], next: Int64?, last: Int64, journal: String?) {
        self.events = events
        self.next = next
        self.last = last
        self.journal = journal
    }

    private enum CodingKeys: String, CodingKey { case events, next, last, journal }

    public func encode(to encoder: any Encoder) throws {
        // `encode` instead of `encodeIfPresent`: every field is present in the output, with `null` for `nil`.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(events, forKey: .events)
        try container.encode(next, forKey: .next)
        try container.encode(last, forKey: .last)
        try container.encode(journal, forKey: .journal)
    }
}

/// The result of `events.subscribe`; `event` notifications follow on the same connection.
public struct EventsSubscribeResult: Codable, Sendable, Equatable {
    /// The sequence number of the newest event at the time of the subscription.
    public var last: Int64
    /// The name of the journal (see ``EventsSubscribeParameters/journal``); `nil` from a daemon that has none.
    public var journal: String?

    public init(last: Int64, journal: String?) {
        self.last = last
        self.journal = journal
    }
}

/// The result of methods that return no data.
public struct Acknowledgement: Codable, Sendable, Equatable {
    public var ok = true

    public init() {}
}
