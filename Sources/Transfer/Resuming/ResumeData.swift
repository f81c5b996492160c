import Crypto
import FoundationEssentials

/// What a download needs to go on where it stopped: which bytes of its part file are known to be on disk, and
/// which version of the resource they are of.
///
/// Those of a request that was given a ``DownloadDestination`` also hold the request itself and where the part lies, so
/// that ``SessionManager/download(resumingWith:request:to:)`` can go on with their ``bytes`` alone, in any process.
/// **Keep them as secret as the URL is.** What proves who asks (credential, client identity, authorization and cookie
/// fields) is not in them: adapters, ``Request/authenticate(with:)`` or another request bring it again.
public struct ResumeData: Sendable, Equatable, Codable {
    /// Grows with changes of this form; another one is not read.
    private var form = 1
    /// The part file's generation: made anew whenever a part begins from nothing, and written on the part itself,
    /// so that an old note never speaks for a new part.
    public var generation: String
    /// Which URL the bytes came from, as a digest, since URLs hold secrets. A validator tells versions of one resource
    /// apart and says nothing across two (RFC 9110, section 8.8.3).
    var resource: String
    /// Bytes of the resource that a sync has brought to the disk.
    public var ranges: ByteRangeSet
    /// Of the version that the bytes are of.
    public var validator: ResourceValidator
    /// Bytes of the whole resource, where known.
    public var total: Int64?
    /// Of the whole resource, where the server stated one.
    var digest: FileDigest?
    /// See ``ResourceVersion/isJoined``.
    private var isJoined: Bool?
    /// See ``ResourceVersion/origin``.
    var origin: String?
    /// As `Content-Disposition` has it; not made safe.
    public var suggestedFileName: String?
    /// What earlier attempts brought and was wrong as a whole.
    var mismatches: Mismatches?
    /// Absent where the part belongs to a ``DownloadTarget``, whose owner knows the rest.
    var record: DownloadRecord?

    init(
        generation: String, resource: String, ranges: ByteRangeSet, version: ResourceVersion,
        mismatches: Mismatches = Mismatches(), record: DownloadRecord? = nil
    ) {
        self.record = record
        self.mismatches = mismatches.isEmpty ? nil : mismatches
        self.generation = generation
        self.resource = resource
        self.ranges = ranges
        validator = version.validator
        total = version.total
        digest = version.digest
        isJoined = version.isJoined ? true : nil
        origin = version.origin
        suggestedFileName = version.suggestedFileName
    }

    var version: ResourceVersion {
        ResourceVersion(
            validator: validator, origin: origin, total: total, digest: digest, isJoined: isJoined ?? false,
            suggestedFileName: suggestedFileName)
    }

    /// The same, for a download from another URL of which a person says that it is the same file's: what is here counts
    /// as far as the server's answers show it to be of its version.
    public func moved(to url: String) -> ResumeData {
        var moved = self
        moved.resource = Self.resource(of: url)
        return moved
    }

    /// What ``resource`` is for a URL.
    static func resource(of url: String) -> String {
        String(SHA256.hash(data: Array(url.utf8)).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, radix: 16)
    }

    /// - Returns: `nil` where `bytes` are not resume data of this form: the download then starts afresh.
    public init?(bytes: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(ResumeData.self, from: Data(bytes)), decoded.form == 1,
            decoded.record?.decision.isSound ?? true
        else { return nil }
        self = decoded
    }

    /// For keeping.
    public var bytes: [UInt8] {
        (try? JSONEncoder().encode(self)).map { Array($0) } ?? []
    }
}
