/// The version of the resource that a part's bytes belong to, from a response.
struct ResourceVersion: Sendable, Equatable {
    var validator = ResourceValidator()
    /// The URL that sent the validator, after redirects, as ``ResumeData/resource(of:)``. A validator is meaningless
    /// for another URL (RFC 9110, section 8.8.3).
    var origin: String?
    /// The media type that the response stated, in lower case and without parameters.
    var mediaType: String?
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
    /// The sanitised last segment of the URL to which the request's own URL was redirected.
    var redirectedFileName: String?
    /// See ``ResumeData/sendsRanges``.
    var sendsRanges: Bool?

    /// Returns the version of a later response that continues this one. Values that the later response omits remain
    /// valid.
    func continued(by later: ResourceVersion) -> ResourceVersion {
        var version = later
        if later.validator.ifRange == nil, validator.ifRange != nil, origin == later.origin {
            version.validator = validator
        }
        version.mediaType = mediaType ?? later.mediaType
        version.total = later.total ?? total
        version.digest = later.digest ?? digest
        version.isJoined = later.isJoined || isJoined
        version.suggestedFileName = later.suggestedFileName ?? suggestedFileName
        version.redirectedFileName = redirectedFileName ?? later.redirectedFileName
        version.sendsRanges = later.sendsRanges ?? sendsRanges
        return version
    }
}

/// A version other than that of the part, sent by a response that did not prove it. The response may have been a
/// login page, or the page of a captive portal.
struct UnconfirmedVersion: Sendable, Equatable, Codable {
    var validator: ResourceValidator
    /// The length of the body in bytes, if it was stated.
    var length: Int64?
    /// The media type in lower case, without parameters.
    var mediaType: String?
    /// The time of the request, in milliseconds since 1970.
    var requestedAt: Int64

    init(_ head: ResponseHead, length: Int64?, requestedAt: Int64) {
        validator = head.validator
        self.length = length
        mediaType = head.mediaType
        self.requestedAt = requestedAt
    }

    /// Returns whether a later response shows the same version: by its validator, or by length and type. Two bodies of
    /// unknown length are the same only if they have the type of the part.
    func agrees(with later: UnconfirmedVersion, typeOfPart: String?) -> Bool {
        if validator.isShown(by: later.validator) { return true }
        guard length == later.length, mediaType == later.mediaType else { return false }
        return length != nil || mediaType == typeOfPart
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
    /// The last segment of the URL to which the request's own URL was redirected, sanitised; `nil` without a redirect.
    public var redirectedFileName: String?
    /// The `Last-Modified` date in seconds since 1970 (RFC 9110, section 8.8.2).
    public var lastModified: Int64?

    /// Creates metadata, for calling a target's ``DownloadTarget/destination`` directly, as tests do.
    public init(
        head: ResponseHead? = nil, suggestedFileName: String? = nil, redirectedFileName: String? = nil,
        lastModified: Int64? = nil
    ) {
        self.head = head
        self.suggestedFileName = suggestedFileName
        self.redirectedFileName = redirectedFileName
        self.lastModified = lastModified
    }

    init(_ head: ResponseHead?, _ version: ResourceVersion) {
        self.init(
            head: head, suggestedFileName: version.suggestedFileName, redirectedFileName: version.redirectedFileName,
            lastModified: version.validator.lastModified.flatMap(HTTPDate.parse))
    }
}
