/// The rarely used options of a ``TaskSpecification``, which reads and writes them under the same names.
///
/// `TaskField/all` declares each of them.
public struct DetailValues: Sendable, Equatable {
    public static let `default` = DetailValues()

    /// Download: whether the URL points to a Metalink (RFC 5854), whose described file is then downloaded. Options of
    /// the task take precedence over those of the Metalink.
    public var metalink: Bool = false
    /// Download: other URLs of the identical file, in order of preference. Bytes from several sources are combined only
    /// if a digest of the whole file is known. Without a digest a mirror replaces a failing URL, and the download
    /// restarts from the beginning.
    public var mirrors: [String] = []
    /// Upload: the absolute path of the source.
    public var file: String?
    /// Upload: `PUT` or `POST`. The default is `POST` for a form, otherwise `PUT`.
    public var method: String?
    /// Upload: the media type of the body, or of the file in a form.
    public var contentType: String?
    /// Upload: the form fields sent before the file (`multipart/form-data`, RFC 7578), each `NAME=VALUE`.
    public var form: [String] = []
    /// Upload: the name of the file's form field. The default is `file`. Setting it makes the upload a form even
    /// without other fields.
    public var fileField: String?
    /// The expected digest, `ALGORITHM:HEX`; see ``Checksum``.
    public var checksum: String?
    /// Download: the URL of a list of digests, such as a `SHA256SUMS` file. It is an alternative to ``checksum``.
    public var checksumURL: String?
    /// Download: the known size of the file in bytes.
    public var size: Int64?
    /// Download: the digests of the file's pieces.
    public var pieceHashes: PieceHashes?
    /// Download: the number of connections. The default comes from the configuration.
    public var connections: ConnectionCount?
    /// The rate limit in bytes per second. By default only the daemon's limits apply.
    public var limit: Int64?
    /// Extra request header lines, each `Name: value`.
    public var headers: [String] = []
    public var user: String?
    public var password: String?
    /// Cookies in Netscape file format. Each cookie is sent only to the hosts and paths that it names.
    public var cookies: String?
    /// Logins by server in netrc format, for the task's own server and for those to which redirects and mirrors lead.
    public var netrc: String?
    public var userAgent: String?
    public var referer: String?
    /// The proxy URL: `http://`, `https://`, `socks5://` or `socks5h://` with host and port.
    public var proxy: String?
    /// PEM text with the CA certificates to trust instead of the system's.
    public var caCertificates: String?
    /// Whether the certificates of servers are not verified, except of hosts for which the configuration has `trust`.
    public var insecure: Bool = false
    /// The maximum size in bytes. A larger response body fails with `too-large`.
    public var maxSize: Int64?
    /// The time-out for connecting, in milliseconds. By default the configuration's applies.
    public var connectTimeout: Milliseconds?
    /// The time without a byte after which an attempt ends, in milliseconds. By default the configuration's applies.
    public var stallTimeout: Milliseconds?
    /// The number of attempts without progress after which the task fails. By default the configuration's applies.
    public var maxAttempts: Int?
    /// The earliest start, in milliseconds since 1970. The task waits until then.
    public var startAt: Milliseconds?
    /// Queue file entry: the original text of ``startAt``, where it is relative to the time of reading (`22:00`,
    /// `+2h`). Applying a file again with the same text does not postpone the start.
    public var startAtText: String?
    /// The dependency: the task waits until this one has completed.
    public var afterTask: TaskID?
    public var onConflict: ConflictPolicy?
    /// Download: where the file's name comes from, if `output` does not give it. By default it is the name in the
    /// response's `Content-Disposition`, otherwise in the URL; a URL without a suffix yields to the one to which it was
    /// redirected.
    public var nameFrom: NameSource?
    /// Download: whether an existing file is kept if the server has no other version, and otherwise replaced once the new
    /// one is complete.
    public var update: Bool = false
    /// Whether the file keeps its time of arrival as its modification time, instead of the time given by the server.
    public var noMtime: Bool = false
    /// Whether the task is added in the paused state.
    public var paused: Bool = false
    /// Download: whether a relative directory is beneath the common directory, which holds files of other owners too,
    /// instead of the owner's directory. It is used only when the task is added; afterwards the directory contains the
    /// result.
    public var shared: Bool = false
    /// The group ids of the user who added the task. They determine the user's read and write permissions. Stored with
    /// the secrets; not a JSON field.
    package var groups: [UInt32] = []
    /// Upload, in `task.add` only: the index, from 0, of the open file of the last `source.receive` that is ``file``.
    /// The daemon uses this file descriptor where the user's permissions for the path are insufficient or unknown.
    public var descriptor: Int?
    /// Upload: the name under which the daemon keeps the open file that a client passed. Stored with the secrets; not a
    /// JSON field.
    package var passedSource: String?
}

/// A reference-counted box of rarely used values that all copies of a specification share. At least one value differs
/// from its default.
@usableFromInline
final class Details: Sendable, Equatable {
    @usableFromInline let values: DetailValues
    /// The fields whose values differ from the defaults.
    let fields: TaskFieldSet

    private init(_ values: DetailValues, _ fields: TaskFieldSet) {
        self.values = values
        self.fields = fields
    }

    /// Returns a box of the values; `nil` where all of them have their defaults.
    ///
    /// - Parameter known: a box that is returned if its values are the same. This saves memory.
    static func holding(_ values: DetailValues, sharing known: Details? = nil) -> Details? {
        if let known, known.holds(values) { return known }
        let fields = values.setFields
        return fields.isEmpty ? nil : Details(values, fields)
    }

    @usableFromInline
    static func == (one: Details, other: Details) -> Bool {
        one === other || one.fields == other.fields && one.holds(other.values)
    }

    /// Returns whether the values are the same.
    private func holds(_ values: DetailValues) -> Bool {
        self.values.withMemory { own in
            values.withMemory { others in
                for field in FieldLayout.rare.differences(own, others) where field.operations.differs(own, others) {
                    return false
                }
                return true
            }
        }
    }
}

/// A specification with its rarely used values beside it, so that any field can be changed by a key path of stored
/// properties.
package struct UnpackedTask: Sendable, Equatable {
    /// The specification. Its own rarely used values are those before any change.
    package var task: TaskSpecification
    package var details: DetailValues

    package init(_ task: TaskSpecification) {
        self.task = task
        details = task.details?.values ?? .default
    }

    /// The specification with all changes.
    package var packed: TaskSpecification {
        var packed = task
        packed.details = Details.holding(details, sharing: task.details)
        return packed
    }
}
