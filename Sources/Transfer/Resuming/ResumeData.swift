import Crypto
public import FoundationEssentials

/// The state from which a download resumes: the bytes of its part file that are known to be on disk, and their version
/// of the resource.
///
/// If the request had a ``DownloadDestination``, resume data also contain the request and the path of the part.
/// ``SessionManager/download(resumingWith:request:to:modifier:)`` can then resume from their ``bytes`` alone, in any
/// process. **Keep them as secret as the URL is.** They do not contain authentication data (credential, client
/// identity, authorization and cookie fields). Adapters, ``Request/authenticate(with:)`` or another request must supply
/// these again.
public struct ResumeData: Sendable, Equatable, Codable {
    /// The format version. Other versions are not decoded.
    private var form = 1
    /// The part file's generation. A new one is created for each part started from the beginning and is written to the
    /// part itself, so that old resume data are never applied to a new part.
    public var generation: String
    /// The URL that the bytes came from, as a digest, because URLs contain secrets. A validator distinguishes versions
    /// of one resource and has no meaning across two (RFC 9110, section 8.8.3).
    var resource: String
    /// The bytes of the resource that have been synced (fsync) to disk.
    public var ranges: ByteRangeSet
    /// The validator of the bytes' version.
    public var validator: ResourceValidator
    /// See ``ResourceVersion/mediaType``.
    private var mediaType: String?
    /// The length of the whole resource in bytes, if known.
    public var total: Int64?
    /// The digest of the whole resource, if the server sent one.
    var digest: FileDigest?
    /// See ``ResourceVersion/isJoined``.
    private var isJoined: Bool?
    /// See ``ResourceVersion/origin``.
    var origin: String?
    /// The file name in `Content-Disposition`. It is not sanitised.
    public var suggestedFileName: String?
    /// The sanitised last segment of the URL to which the request's own URL was redirected.
    public private(set) var redirectedFileName: String?
    /// Whether the server has sent a range, or has said that it does. Otherwise resuming probably begins again from 0.
    /// `nil` if it is unknown, as with file servers.
    public private(set) var sendsRanges: Bool?
    /// The digest mismatches of earlier attempts.
    var mismatches: Mismatches?
    /// The other version that an earlier response claimed. A second response may confirm it.
    private(set) var unconfirmed: UnconfirmedVersion?
    /// The request and destination; `nil` if the part belongs to a ``DownloadTarget``, whose owner has them.
    var record: DownloadRecord?

    init(
        generation: String, resource: String, ranges: ByteRangeSet, version: ResourceVersion,
        mismatches: Mismatches = Mismatches(), unconfirmed: UnconfirmedVersion? = nil, record: DownloadRecord? = nil
    ) {
        self.record = record
        self.unconfirmed = unconfirmed
        self.mismatches = mismatches.isEmpty ? nil : mismatches
        self.generation = generation
        self.resource = resource
        self.ranges = ranges
        validator = version.validator
        mediaType = version.mediaType
        total = version.total
        digest = version.digest
        isJoined = version.isJoined ? true : nil
        origin = version.origin
        suggestedFileName = version.suggestedFileName
        redirectedFileName = version.redirectedFileName
        sendsRanges = version.sendsRanges
    }

    var version: ResourceVersion {
        ResourceVersion(
            validator: validator, origin: origin, mediaType: mediaType, total: total, digest: digest,
            isJoined: isJoined ?? false,
            suggestedFileName: suggestedFileName, redirectedFileName: redirectedFileName, sendsRanges: sendsRanges)
    }

    /// Returns the resume data for a download from another URL that the user declares to be of the same file. The bytes
    /// are kept if the server's responses show that they are of the same version.
    public func moved(to url: String) -> ResumeData {
        var moved = self
        moved.resource = Self.resource(of: url)
        if moved.resource != resource {
            moved.unconfirmed = nil
            moved.redirectedFileName = nil
            moved.sendsRanges = nil
        }
        return moved
    }

    /// Returns the value of ``resource`` for a URL.
    static func resource(of url: String) -> String {
        String(SHA256.hash(data: Array(url.utf8)).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, radix: 16)
    }

    /// Decodes stored resume data.
    ///
    /// - Returns: `nil` if `bytes` are not resume data of this format. The download then starts from the beginning.
    public init?(bytes: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(ResumeData.self, from: Data(bytes)), decoded.form == 1,
            decoded.record?.decision.isSound ?? true
        else { return nil }
        self = decoded
    }

    /// The encoded form, for storage.
    public var bytes: [UInt8] {
        (try? JSONEncoder().encode(self)).map { Array($0) } ?? []
    }
}

extension ResumeData {
    /// Decodes stored resume data.
    ///
    /// - Returns: `nil` if `bytes` are not resume data of this format. The download then starts from the beginning.
    @_disfavoredOverload
    public init?(bytes: Data) { self.init(bytes: Array(bytes)) }

    /// The encoded form as `Data`, for storage.
    public var data: Data { Data(bytes) }
}

extension ResumeData: CustomStringConvertible, CustomDebugStringConvertible {
    /// The number of bytes that are kept, as in `12 of 24 bytes`. The URL and other contents may be secret, so they are
    /// left out.
    public var description: String { ReadableText.bytes(ranges.count, of: total) }

    /// The ``description``.
    public var debugDescription: String { description }
}

extension ResumeData: CustomReflectable {
    /// A mirror without children, so that `dump` writes the ``description``, which contains no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
