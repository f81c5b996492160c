/// The location of a download's part file, and the rule for its final name.
public struct DownloadTarget: Sendable {
    /// The directory that holds the part file and the finished file.
    public var directory: Directory
    /// The part file's name in the directory, without a slash. Unique to this download.
    public var partName: String
    /// The name of the download, recorded on its part file. Unique to this download, and the same over all attempts and
    /// processes.
    public var owner: String
    /// The rule for the final name and its conditions. It is called after the head of the response is validated, and
    /// without a head if every byte is there already. An error refuses the download before a byte is received.
    public var destination: @Sendable (ResourceMetadata) throws(TransferError) -> FileDestination

    /// The number of bytes to leave free on the file system.
    public var reservedSpace: Int64
    /// The file's share of an allowance that it has in common with other files; `nil` if none is counted. It outlives
    /// the task, and the caller has to end it with ``StorageShare/end(keeping:)``.
    public var share: StorageShare?
    /// Whether this is the download's first attempt, so that no part file of its own exists.
    package var isNew = false
    /// The decision that the target follows from, if it came from a destination.
    var decision: DownloadDecision?

    /// Creates a target in `directory`; see the properties.
    public init(
        directory: Directory, partName: String, owner: String, reservedSpace: Int64 = 0,
        destination: @escaping @Sendable (ResourceMetadata) throws(TransferError) -> FileDestination
    ) {
        self.directory = directory
        self.partName = partName
        self.owner = owner
        self.reservedSpace = reservedSpace
        self.destination = destination
    }
}
