import TaskModel

/// Of `task.add`.
public struct TaskAddResult: Codable, Sendable, Equatable {
    /// In the order of the tasks given.
    public var ids: [TaskID]
    /// The ``ids`` that were there before: their owner has a task with the key, and nothing was added.
    public var found: [TaskID]

    public init(ids: [TaskID], found: [TaskID] = []) {
        self.ids = ids
        self.found = found
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        ids = try container.decode([TaskID].self, forKey: .ids)
        // A daemon of an earlier version does not say it.
        found = try container.decodeIfPresent([TaskID].self, forKey: .found) ?? []
    }
}

/// Of `task.list`.
public struct TaskListResult: Codable, Sendable, Equatable {
    public var tasks: [TaskStatus]
    /// What to pass as `after` for the next page; `null` at the end.
    public var next: TaskID?

    public init(tasks: [TaskStatus], next: TaskID?) {
        self.tasks = tasks
        self.next = next
    }

    private enum CodingKeys: String, CodingKey { case tasks, next }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(tasks, forKey: .tasks)
        try container.encode(next, forKey: .next)
    }
}

/// Of `task.count`.
public struct TaskCountResult: Codable, Sendable, Equatable {
    /// The tasks of one owner.
    public struct Owner: Codable, Sendable, Equatable {
        /// A uid.
        public var owner: UInt32
        public var tasks: Int

        public init(owner: UInt32, tasks: Int) {
            self.owner = owner
            self.tasks = tasks
        }
    }

    public var tasks: Int
    /// By uid; owners without a task are left out.
    public var owners: [Owner]

    public init(owners: [Owner]) {
        tasks = owners.reduce(0) { $0 + $1.tasks }
        self.owners = owners
    }
}

/// Of `task.pause` and its kin.
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
    /// The ids that could not be changed, and those of removed tasks whose file was left since it is not theirs any
    /// more; the others were changed.
    public var errors: [Refusal]

    public init(changed: Int, errors: [Refusal] = []) {
        self.changed = changed
        self.errors = errors
    }
}

/// Of `queue.begin`.
public struct QueueBeginResult: Codable, Sendable, Equatable {
    public var queue: Int64

    public init(queue: Int64) { self.queue = queue }
}

/// Of `queue.put`.
public struct QueuePutResult: Codable, Sendable, Equatable {
    /// Entries in the set so far.
    public var entries: Int

    public init(entries: Int) { self.entries = entries }
}

/// Of `queue.commit`.
public struct QueueCommitResult: Codable, Sendable, Equatable {
    public var added: Int
    public var updated: Int
    public var unchanged: Int
    public var pruned: Int
    /// The ids of the added tasks as ranges `[first, last]`, in the order of the entries.
    public var ids: [[TaskID]]

    public init(added: Int, updated: Int, unchanged: Int, pruned: Int, ids: [[TaskID]]) {
        self.added = added
        self.updated = updated
        self.unchanged = unchanged
        self.pruned = pruned
        self.ids = ids
    }
}

/// Of `queue.list`: the batches that are known.
public struct QueueListResult: Codable, Sendable, Equatable {
    public struct Batch: Codable, Sendable, Equatable {
        public var batch: String
        /// Tasks by state; states without a task are absent.
        public var tasks: [String: Int]
        /// Of all its tasks; of what runs, those of its last checkpoint.
        public var bytesDone: Int64
        /// `null` where the size of one of its tasks is not known.
        public var bytesTotal: Int64?
        /// `completed`, `failed` or `cancelled` once each task has ended; `null` before.
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
            // `encode` and not `encodeIfPresent`: fields never vanish.
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(batch, forKey: .batch)
            try container.encode(tasks, forKey: .tasks)
            try container.encode(bytesDone, forKey: .bytesDone)
            try container.encode(bytesTotal, forKey: .bytesTotal)
            try container.encode(outcome, forKey: .outcome)
        }
    }

    public var batches: [Batch]

    public init(batches: [Batch]) { self.batches = batches }
}

/// Of `daemon.limits`: what counts now.
public struct DaemonLimits: Codable, Sendable, Equatable {
    /// Bytes a second; `null`: any number.
    public var download: Int64?
    public var upload: Int64?
    /// Who says so: `command`, `schedule` or `configuration`.
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
        // `encode` and not `encodeIfPresent`: fields never vanish.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(download, forKey: .download)
        try container.encode(upload, forKey: .upload)
        try container.encode(downloadSource, forKey: .downloadSource)
        try container.encode(uploadSource, forKey: .uploadSource)
    }
}

/// Of `daemon.reload`.
public struct DaemonReloadResult: Codable, Sendable, Equatable {
    public var ok = true
    /// What is to be known: settings that count from the next start on, queue files that could not be applied.
    public var notes: [String]

    public init(notes: [String]) { self.notes = notes }
}

/// Of `events.subscribe`; `event` notifications follow on the same connection.
public struct EventsSubscribeResult: Codable, Sendable, Equatable {
    /// The newest event at the time of the subscription.
    public var last: Int64

    public init(last: Int64) { self.last = last }
}

/// Of methods that have nothing to tell.
public struct Acknowledgement: Codable, Sendable, Equatable {
    public var ok = true

    public init() {}
}
