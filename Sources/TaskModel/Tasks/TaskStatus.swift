/// A task as reported to clients: its record and, for a running task, its live values.
///
/// The JSON object contains every field; unknown values are `null`.
public struct TaskStatus: Sendable, Equatable {
    /// The id.
    public var id: TaskID
    /// The direction of the transfer.
    public var kind: TaskKind
    /// The state.
    public var state: TaskState
    /// The reason of the state `waiting` or `paused`.
    public var reason: TaskReason?
    /// The activity of a running task.
    public var phase: TaskPhase?
    /// The URL, without its secrets.
    public var url: String
    /// The absolute path of the file where it is or will be; of an upload's source. `nil` while it is unknown.
    public var path: String?
    /// The last component of ``path``.
    public var name: String?
    /// The uid of the owner.
    public var owner: UInt32
    /// The batch.
    public var batch: String?
    /// The client's own name for the task.
    public var key: String?
    /// The priority.
    public var priority: TaskPriority
    /// The number of bytes on disk, or sent. After a restart it is the number that was stored last.
    public var bytesDone: Int64
    /// The size in bytes; `nil` if it is unknown.
    public var bytesTotal: Int64?
    /// The number of bytes of bodies received or sent in all attempts together.
    public var bytesFetched: Int64
    /// The current throughput in bytes per second.
    public var rate: Int64?
    /// The estimated remaining time in seconds.
    public var eta: Int64?
    /// The time since which a running transfer has neither received nor sent a byte, and no limit has held it back.
    public var idleSince: Milliseconds?
    /// The time at which the connection is made again if no byte passes until then; `nil` before the first byte.
    public var reconnectsAt: Milliseconds?
    /// The number of open connections.
    public var connections: Int
    /// The number of attempts since the last progress.
    public var attempts: Int
    /// The time before which a waiting task does not start.
    public var notBefore: Milliseconds?
    /// The time at which the task was added.
    public var createdAt: Milliseconds
    /// The time of the first start.
    public var startedAt: Milliseconds?
    /// The time at which the task ended.
    public var finishedAt: Milliseconds?
    /// The last error.
    public var error: TaskFailure?
    /// The expected digest of the file. A digest from a list of digests appears once it is known.
    public var checksum: String?
    /// The URL of the list of digests, without its secrets.
    public var checksumURL: String?
    /// Whether the file was compared with a checksum.
    public var verified: Bool
    /// The task that had to complete first.
    public var afterTask: TaskID?
    /// The current state of a completed download's file. It is set only where a single task is queried, not in lists.
    public var fileState: FileState?

    /// Creates the status of a task that is not running.
    public init(_ record: TaskRecord) {
        id = record.id
        kind = record.specification.kind
        state = record.lifecycle.state
        reason = record.lifecycle.reason
        phase = nil
        url = record.specification.url
        path = record.path
        name = record.path.map(FileName.last)
        owner = record.owner
        batch = record.specification.batch
        key = record.specification.key
        priority = record.specification.priority
        bytesDone = record.bytesDone
        bytesTotal = record.bytesTotal
        bytesFetched = record.bytesFetched
        rate = nil
        eta = nil
        idleSince = nil
        reconnectsAt = nil
        connections = 0
        attempts = record.attempts
        notBefore = record.lifecycle.notBefore
        createdAt = record.createdAt
        startedAt = record.startedAt
        finishedAt = record.finishedAt
        error = record.error
        let checksum = record.specification.checksum
        // Digits alone become ALGORITHM:HEX.
        self.checksum =
            checksum.map { $0.contains(":") ? $0 : (try? Checksum(parsing: $0))?.description ?? $0 }
            ?? record.foundChecksum
        checksumURL = record.specification.checksumURL
        verified = record.verified
        afterTask = record.specification.afterTask
    }

    /// Whether the task will not continue by itself: it ended, or it needs user action without having been paused by a
    /// user.
    public var isSettled: Bool { state.isEnded || (state == .paused && reason?.needsPerson == true) }
}

extension TaskStatus: Codable {
    private enum CodingKeys: String, CodingKey {
        case id, kind, state, reason, phase, url, path, name, owner, batch, key, priority
        case bytesDone, bytesTotal, bytesFetched, rate, eta, idleSince, reconnectsAt, connections, attempts
        case notBefore, createdAt, startedAt, finishedAt, error, checksum, checksumURL, verified, afterTask
        case fileState
    }

    public func encode(to encoder: any Encoder) throws {
        // `encode` instead of `encodeIfPresent`, so that no field is ever missing.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(kind, forKey: .kind)
        try container.encode(state, forKey: .state)
        try container.encode(reason, forKey: .reason)
        try container.encode(phase, forKey: .phase)
        try container.encode(url, forKey: .url)
        try container.encode(path, forKey: .path)
        try container.encode(name, forKey: .name)
        try container.encode(owner, forKey: .owner)
        try container.encode(batch, forKey: .batch)
        try container.encode(key, forKey: .key)
        try container.encode(priority, forKey: .priority)
        try container.encode(bytesDone, forKey: .bytesDone)
        try container.encode(bytesTotal, forKey: .bytesTotal)
        try container.encode(bytesFetched, forKey: .bytesFetched)
        try container.encode(rate, forKey: .rate)
        try container.encode(eta, forKey: .eta)
        try container.encode(idleSince, forKey: .idleSince)
        try container.encode(reconnectsAt, forKey: .reconnectsAt)
        try container.encode(connections, forKey: .connections)
        try container.encode(attempts, forKey: .attempts)
        try container.encode(notBefore, forKey: .notBefore)
        try container.encode(createdAt, forKey: .createdAt)
        try container.encode(startedAt, forKey: .startedAt)
        try container.encode(finishedAt, forKey: .finishedAt)
        try container.encode(error, forKey: .error)
        try container.encode(checksum, forKey: .checksum)
        try container.encode(checksumURL, forKey: .checksumURL)
        try container.encode(verified, forKey: .verified)
        try container.encode(afterTask, forKey: .afterTask)
        try container.encode(fileState, forKey: .fileState)
    }
}
