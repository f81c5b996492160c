/// The destination of a finished download and the conditions for its publication.
public struct FileDestination: Sendable {
    /// The action to take if the name is taken.
    public enum Conflict: Sendable {
        /// The file gets another name. The closure returns the candidates for the numbers 1, 2, ….
        case rename(@Sendable (_ name: String, _ number: Int) -> String)
        /// The existing file is replaced atomically: a reader finds either the complete old file or the new one.
        case overwrite
        /// The download completes without publishing a file of its own.
        case skip
        /// The download fails with ``TransferError/Code/nameConflict``, and the existing file stays.
        case fail

        /// Whether an existing file is replaced.
        var replaces: Bool { if case .overwrite = self { true } else { false } }
    }

    /// The file's name in the target's directory, without a slash.
    public var name: String
    /// The action to take if the name is taken at the time of publication.
    public var conflict: Conflict
    /// The required size in bytes.
    public var size: Int64?
    /// The required digest of the file.
    public var digest: FileDigest?
    /// The required digests of the file's pieces. If the file is wrong, only the wrong pieces are downloaded again.
    public var pieces: PieceDigests?
    /// The modification time of the file in seconds since 1970; `nil` for the time of its arrival.
    public var modificationTime: Int64?
    /// Whether only its owner may read the finished file; otherwise the process's umask applies.
    public var isPrivate = false
    /// The uid of the user the file is downloaded for, in a directory shared by several users: ``Conflict/overwrite``
    /// replaces only files of that user. If `nil`, it replaces any file.
    package var user: UInt32?
    /// The owner of the only file that ``Conflict/overwrite`` replaces. If `nil`, it replaces any file.
    package var replaceable: String?

    /// Whether the download completes without a byte where the file of this name is of the version that the server has.
    /// The finished file then records its version.
    package var keepsCurrentFile = false
    /// The version to record.
    var version: FileVersion?

    /// Creates a destination with a file name and its conditions; see the properties.
    public init(name: String, conflict: Conflict, digest: FileDigest? = nil, modificationTime: Int64? = nil) {
        self.name = name
        self.conflict = conflict
        self.digest = digest
        self.modificationTime = modificationTime
    }
}

extension FileDestination {
    /// Validates the size.
    ///
    /// - Throws: `checksumMismatch` if a file of `size` bytes cannot be the required one.
    func check(size: Int64) throws(TransferError) {
        guard let wanted = self.size, wanted != size else { return }
        throw TransferError(.checksumMismatch, "the server's file has \(size) bytes instead of the expected \(wanted)")
    }
}

/// A complete file that passed its checks and has its final name; all of this survives a power failure.
public struct PublishedFile: Sendable, Equatable {
    /// The absolute path.
    public var path: String
    /// The size in bytes.
    public var size: Int64
    /// Whether a digest was known, from any source, and matches.
    public var isVerified: Bool
    /// Whether the file was there before: the destination accepts a taken name, or the server has no other version.
    public var wasPresent = false
}
