/// The version of the resource that a part's bytes belong to, from a response.
struct ResourceVersion: Sendable, Equatable {
    var validator = ResourceValidator()
    /// The URL that sent the validator, after redirects, as ``ResumeData/resource(of:)``. A validator is meaningless
    /// for another URL (RFC 9110, section 8.8.3).
    var origin: String?
    /// The length of the whole resource in bytes, if known.
    var total: Int64?
    /// The digest of the whole resource, as sent by the server (RFC 9530).
    var digest: FileDigest?
    /// Whether the part contains bytes from several sources, protected by a digest of the whole.
    var isJoined = false
    /// Whether the response had a content coding, although identity was requested, and was decoded on receipt. Ranges
    /// of decoded bytes cannot be requested.
    var isDecoded = false
    /// The file name in `Content-Disposition`.
    var suggestedFileName: String?

    /// Returns the version of a later response that continues this one. Values that the later response omits remain
    /// valid.
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

/// The digest of a whole version, as sent by a server.
struct StatedDigest: Sendable, Equatable, Codable {
    var digest: FileDigest
    /// The version's ETag; `nil` if it has no strong one.
    var entityTag: String?
}

/// The properties of a resource when its file is named.
public struct ResourceMetadata: Sendable {
    /// The head of the response with the body; `nil` if all bytes were already present.
    public var head: ResponseHead?
    /// The file name in `Content-Disposition` of this or an earlier response (RFC 6266). It is not sanitised.
    public var suggestedFileName: String?
    /// The `Last-Modified` date in seconds since 1970 (RFC 9110, section 8.8.2).
    public var lastModified: Int64?

    /// Creates metadata, for calling a target's ``DownloadTarget/destination`` directly, as tests do.
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
