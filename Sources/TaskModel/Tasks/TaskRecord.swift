/// A task as stored in the database.
public struct TaskRecord: Sendable, Equatable {
    public var id: TaskID
    /// The requested options, without their secrets.
    public var specification: TaskSpecification
    /// The uid of the user who added the task.
    public var owner: UInt32
    public var lifecycle: TaskLifecycle
    /// The absolute path of the downloaded file, existing or future, or of the source of an upload.
    public var path: String?
    /// Bytes known to be on disk, or bytes sent by an upload that ended.
    public var bytesDone: Int64 = 0
    public var bytesTotal: Int64?
    /// Body bytes received or sent over all attempts.
    public var bytesFetched: Int64 = 0
    /// Completed attempts. An attempt that ended because the daemon stopped does not count.
    public var attempts: Int = 0
    /// Consecutive attempts without progress. The retry limit applies to this number.
    public var failures: Int = 0
    public var createdAt: Milliseconds
    public var startedAt: Milliseconds?
    public var finishedAt: Milliseconds?
    public var error: TaskFailure?
    public var verified: Bool = false
    /// The file's digest from a list of digests or from a Metalink, once known.
    public var foundChecksum: String?
    /// The number of retries after the task's completion.
    public var round: Int = 0

    public init(
        id: TaskID, specification: TaskSpecification, owner: UInt32, lifecycle: TaskLifecycle, createdAt: Milliseconds
    ) {
        self.id = id
        self.specification = specification
        self.owner = owner
        self.lifecycle = lifecycle
        self.createdAt = createdAt
    }
}
