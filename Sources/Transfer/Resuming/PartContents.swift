/// The bytes that a download's part file holds, and the version of the resource that they belong to.
///
/// A value without I/O: ``DownloadFile`` keeps it in step with the disk, and ``DownloadStateMachine`` decides by it.
struct PartContents: Sendable {
    /// The version of the resource that the bytes belong to, as far as responses have described it.
    private(set) var version = ResourceVersion()
    /// Byte ranges that were handed to the kernel.
    private(set) var written = ByteRangeSet()
    /// The number of bytes in ``written``.
    private(set) var count: Int64 = 0
    /// Whether a digest of the whole file is known.
    var hasDigest = false
    /// Whether digests of the file's pieces are known.
    var hasPieceDigests = false

    init() {}

    /// - Parameters:
    ///   - version: the version that the bytes belong to.
    ///   - written: the byte ranges that the part file holds.
    init(version: ResourceVersion, written: ByteRangeSet) {
        self.version = version
        self.written = written
        count = written.count
    }

    /// The number of contiguous bytes from the file's first byte on.
    var front: Int64 { written.contiguousEnd }

    /// Whether bytes of several sources may be combined: a digest will show whether they belong together.
    var isJoinable: Bool { hasDigest || hasPieceDigests }

    /// Records that the kernel has taken the bytes of `range`.
    mutating func record(_ range: Range<Int64>) {
        written.insert(range)
        count = written.count
    }

    /// Forgets the bytes behind the first gap: nothing ties them to those before it.
    ///
    /// - Returns: whether there were any.
    mutating func keepFront() -> Bool {
        guard written.ranges.count > 1 || (front == 0 && count > 0) else { return false }
        written = ByteRangeSet(front > 0 ? [0..<front] : [])
        count = front
        return true
    }

    /// Adds what a later response of the same version says of the resource.
    mutating func adopt(_ claimed: ResourceVersion) { version = version.continued(by: claimed) }

    /// Records that bytes of several sources are in the part.
    ///
    /// - Returns: whether that is new.
    mutating func join() -> Bool {
        guard !version.isJoined else { return false }
        version.isJoined = true
        return true
    }

    /// Forgets everything; the digest has to be learnt again too.
    mutating func removeAll() {
        version = ResourceVersion()
        written = ByteRangeSet()
        count = 0
        hasDigest = false
    }

    /// Whether another source may fetch the missing bytes.
    ///
    /// - Parameter hasMismatch: whether the whole file once failed its digest. Then bytes of two servers are combined
    ///   only where the digest of each piece shows whose are wrong.
    func mayBeJoined(hasMismatch: Bool) -> Bool {
        let isTrusted = !hasMismatch || hasPieceDigests
        return count == 0 || (isTrusted && (isJoinable || version.isJoined))
    }

    /// Whether another source is tried after `error` of the source that the bytes are from.
    ///
    /// The bytes are worth waiting for their source, unless no request can ever continue them.
    ///
    /// - Parameter leavesFailingSource: whether the request prefers another source to waiting.
    func mayLeaveSource(after error: TransferError, hasMismatch: Bool, leavesFailingSource: Bool) -> Bool {
        let retrying = RetryClass(error)
        if mayBeJoined(hasMismatch: hasMismatch) || retrying.isLasting { return true }
        return retrying == .soon && (count < Self.worthWaiting || leavesFailingSource)
    }

    /// The number of bytes from which on a failing source is waited for.
    private static let worthWaiting: Int64 = 1 << 20
}
