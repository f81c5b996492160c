/// Where a finished download goes, and on which conditions.
public struct FileDestination: Sendable {
    /// What becomes of a name that is taken.
    public enum Conflict: Sendable {
        /// The names to try instead, one after the other, for the numbers 1, 2, ….
        case rename(@Sendable (_ name: String, _ number: Int) -> String)
        case overwrite
        /// Done, without a file of ours.
        case skip
        case fail
    }

    public var name: String
    public var conflict: Conflict
    /// What the bytes must hash to.
    public var digest: FileDigest?
    /// Seconds since 1970, for the file's time; absent: the moment of its arrival.
    public var modificationTime: Int64?
    /// Only its owner may read the finished file; otherwise whoever the process's umask lets.
    public var isPrivate = false

    public init(name: String, conflict: Conflict, digest: FileDigest? = nil, modificationTime: Int64? = nil) {
        self.name = name
        self.conflict = conflict
        self.digest = digest
        self.modificationTime = modificationTime
    }
}

/// A file that is whole, verified and under its final name, all of which a power cut cannot undo.
public struct PublishedFile: Sendable, Equatable {
    /// Absolute.
    public var path: String
    public var size: Int64
    /// A digest was given and agrees.
    public var isVerified: Bool
}
