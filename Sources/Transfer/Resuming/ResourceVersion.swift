/// What an answer said of the resource that a part's bytes are of.
struct ResourceVersion: Sendable, Equatable {
    var validator = ResourceValidator()
    /// Which URL sent the validator, after redirects, as ``ResumeData/resource(of:)`` has it. To a validator of
    /// another URL nothing can be asked (RFC 9110, section 8.8.3).
    var origin: String?
    /// Bytes of the whole resource, where known.
    var total: Int64?
    /// Of the whole resource, as the server states it (RFC 9530).
    var digest: FileDigest?
    /// Bytes of several sources lie in the part, under a digest of the whole.
    var isJoined = false
    /// The bytes came coded though they were asked for as they are, and were decoded on their way: none of them can be
    /// asked for again.
    var isDecoded = false
    /// As `Content-Disposition` has it.
    var suggestedFileName: String?

    /// The version that a later answer, which continues this one, speaks of: what it leaves out still holds.
    func continued(by later: ResourceVersion) -> ResourceVersion {
        var version = later
        if later.validator.ifRange == nil, validator.ifRange != nil, origin == later.origin {
            version.validator = validator
        }
        version.total = later.total ?? total
        version.digest = later.digest ?? digest
        version.isJoined = later.isJoined || isJoined
        version.suggestedFileName = later.suggestedFileName ?? suggestedFileName
        return version
    }
}

/// What a server stated that the whole of a version hashes to.
struct StatedDigest: Sendable, Equatable, Codable {
    var digest: FileDigest
    /// The version's; `nil` where it has no strong one.
    var entityTag: String?
}

/// What is known of a resource when its file is given a name.
public struct ResourceMetadata: Sendable {
    /// Of the answer that brings the body; `nil` where every byte was there already.
    public var head: ResponseHead?
    /// As `Content-Disposition` has it, now or in an earlier answer (RFC 6266); not made safe.
    public var suggestedFileName: String?
    /// Seconds since 1970 (RFC 9110, section 8.8.2).
    public var lastModified: Int64?

    /// For calling a target's ``DownloadTarget/destination`` by hand, as tests do.
    public init(head: ResponseHead? = nil, suggestedFileName: String? = nil, lastModified: Int64? = nil) {
        self.head = head
        self.suggestedFileName = suggestedFileName
        self.lastModified = lastModified
    }

    init(_ head: ResponseHead?, _ version: ResourceVersion) {
        self.init(
            head: head, suggestedFileName: version.suggestedFileName,
            lastModified: version.validator.lastModified.flatMap(HTTPDate.parse))
    }
}
