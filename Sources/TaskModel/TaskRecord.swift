/// A task as the store holds it.
public struct TaskRecord: Sendable, Equatable {
    public var id: TaskID
    /// What was asked for, without its secrets.
    public var specification: TaskSpecification
    /// The uid of whoever asked.
    public var owner: UInt32
    public var standing: TaskStanding
    /// Absolute: where the finished file is or will be; the source of an upload.
    public var path: String?
    /// Bytes that are on disk and known to be, or sent by an upload that ended.
    public var bytesDone: Int64 = 0
    public var bytesTotal: Int64?
    /// Body bytes received or sent over all attempts.
    public var bytesFetched: Int64 = 0
    /// Attempts that came to an end of their own; a daemon's end is none.
    public var attempts: Int = 0
    /// Attempts in a row without progress: what the limit on retries counts.
    public var failures: Int = 0
    public var createdAt: Milliseconds
    public var startedAt: Milliseconds?
    public var finishedAt: Milliseconds?
    public var error: TaskFailure?
    public var verified: Bool = false
    /// What a list of digests, or a Metalink, says of the file, once that is known.
    public var foundChecksum: String?

    public init(
        id: TaskID, specification: TaskSpecification, owner: UInt32, standing: TaskStanding, createdAt: Milliseconds
    ) {
        self.id = id
        self.specification = specification
        self.owner = owner
        self.standing = standing
        self.createdAt = createdAt
    }
}
