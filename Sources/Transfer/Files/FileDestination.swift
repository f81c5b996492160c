/// Where a finished download goes, and on which conditions.
public struct FileDestination: Sendable {
    /// What becomes of a name that is taken.
    public enum Conflict: Sendable {
        /// The names to try instead, one after the other, for the numbers 1, 2, ….
        case rename(@Sendable (_ name: String, _ number: Int) -> String)
        /// The file of that name is replaced in one step: whoever opens it finds the old one whole, or the new one.
        case overwrite
        /// Done, without a file of ours.
        case skip
        /// The download fails with ``TransferError/Code/nameConflict``, and the other file stays.
        case fail
    }

    /// The file's name in the target's directory; a name alone, without a slash.
    public var name: String
    /// What becomes of a name that is taken, judged at the moment when the file gets it.
    public var conflict: Conflict
    /// Bytes that the file must have.
    public var size: Int64?
    /// What the bytes must hash to.
    public var digest: FileDigest?
    /// What its pieces must hash to: a file that is wrong is fetched again where its pieces are.
    public var pieces: PieceDigests?
    /// Seconds since 1970, for the file's time; absent: the moment of its arrival.
    public var modificationTime: Int64?
    /// Only its owner may read the finished file; otherwise whoever the process's umask lets.
    public var isPrivate = false
    /// The uid of the user for whom it is fetched, in a directory where others have files too: ``Conflict/overwrite``
    /// replaces hers alone. Absent: whatever has the name.
    package var user: UInt32?

    /// A name, and what holds for the file that gets it; see the properties.
    public init(name: String, conflict: Conflict, digest: FileDigest? = nil, modificationTime: Int64? = nil) {
        self.name = name
        self.conflict = conflict
        self.digest = digest
        self.modificationTime = modificationTime
    }
}

extension FileDestination {
    /// - Throws: `checksumMismatch` where a file of `size` bytes cannot be the one that is wanted.
    func check(size: Int64) throws(TransferError) {
        guard let wanted = self.size, wanted != size else { return }
        throw TransferError(.checksumMismatch, "the server's file has \(size) bytes, and the one wanted \(wanted)")
    }
}

/// A file that is whole, verified and under its final name, all of which a power cut cannot undo.
public struct PublishedFile: Sendable, Equatable {
    /// Absolute.
    public var path: String
    /// Bytes.
    public var size: Int64
    /// A digest was known, whoever told it, and agrees.
    public var isVerified: Bool
}
