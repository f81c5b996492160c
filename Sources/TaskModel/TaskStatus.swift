/// A task as it is told: the record, and where the task runs, what is known of it at this moment.
///
/// In JSON every field is there; what is not known is `null`.
public struct TaskStatus: Sendable, Equatable {
    public var id: TaskID
    public var kind: TaskKind
    public var state: TaskState
    public var reason: TaskReason?
    public var phase: TaskPhase?
    /// Secrets removed.
    public var url: String
    public var path: String?
    public var name: String?
    public var owner: UInt32
    public var batch: String?
    public var key: String?
    public var priority: TaskPriority
    public var bytesDone: Int64
    public var bytesTotal: Int64?
    public var bytesFetched: Int64
    /// Bytes a second.
    public var rate: Int64?
    /// Seconds.
    public var eta: Int64?
    public var connections: Int
    public var attempts: Int
    public var notBefore: Milliseconds?
    public var createdAt: Milliseconds
    public var startedAt: Milliseconds?
    public var finishedAt: Milliseconds?
    public var error: TaskFailure?
    /// What the file has to hash to; of one that a list of digests tells, once that is known.
    public var checksum: String?
    /// The list of digests; secrets removed.
    public var checksumURL: String?
    public var verified: Bool
    /// The task that was to complete first.
    public var afterTask: TaskID?
    /// Of a completed download: what became of its file since. Known where one task is asked for, and not of those in a
    /// list.
    public var fileState: FileState?

    /// The record of a task that does not run.
    public init(_ record: TaskRecord) {
        id = record.id
        kind = record.specification.kind
        state = record.standing.state
        reason = record.standing.reason
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
        connections = 0
        attempts = record.attempts
        notBefore = record.standing.notBefore
        createdAt = record.createdAt
        startedAt = record.startedAt
        finishedAt = record.finishedAt
        error = record.error
        checksum = record.specification.checksum ?? record.foundChecksum
        checksumURL = record.specification.checksumURL
        verified = record.verified
        afterTask = record.specification.afterTask
    }

    /// The task will not go on by itself: it ended, or it needs a person who did not pause it.
    public var isSettled: Bool { state.isEnded || (state == .paused && reason?.needsPerson == true) }
}

extension TaskStatus: Codable {
    private enum CodingKeys: String, CodingKey {
        case id, kind, state, reason, phase, url, path, name, owner, batch, key, priority
        case bytesDone, bytesTotal, bytesFetched, rate, eta, connections, attempts
        case notBefore, createdAt, startedAt, finishedAt, error, checksum, checksumURL, verified, afterTask
        case fileState
    }

    public func encode(to encoder: any Encoder) throws {
        // `encode` and not `encodeIfPresent`: fields never vanish.
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
