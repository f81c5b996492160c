/// The options of a task as the user requested them: an entry of `task.add`, of a queue file or of a list.
///
/// The JSON keys are the names of the properties. Absent keys have the default values.
public struct TaskSpecification: Sendable, Equatable {
    public var kind: TaskKind = .download
    public var url: String
    /// Download: the file name. The default is the name in Content-Disposition, otherwise the last segment of the URL.
    public var output: String?
    /// Download: the target directory. A relative path is beneath the configured directory; an absolute path must be
    /// beneath one of the configured roots; a path that is `~` or begins with `~/` is beneath the owner's own
    /// directory, a subdirectory of the configured one. The default is the configured directory.
    public var directory: String?
    public var priority: TaskPriority = .normal
    /// The name that all tasks of a batch share.
    public var batch: String?
    /// An idempotency key chosen by the client. A second task with the same key is not added.
    public var key: String?
    /// The rarely used options; `nil` where all of them have their default values. This saves memory, since the queue
    /// can hold millions of tasks.
    private var details: Details?

    public init(kind: TaskKind = .download, url: String) {
        self.kind = kind
        self.url = url
    }

    /// Whether the task is a download with no option set but the URL.
    public var isURLAlone: Bool {
        isPlain && kind == .download && priority == .normal && output == nil && directory == nil && batch == nil
            && key == nil
    }
}

/// The rarely used options. They have the names of the corresponding properties of ``TaskSpecification``.
struct DetailValues: Sendable, Equatable {
    static let `default` = DetailValues()

    var metalink: Bool = false
    var mirrors: [String] = []
    var file: String?
    var method: String?
    var contentType: String?
    var form: [String] = []
    var fileField: String?
    var checksum: String?
    var checksumURL: String?
    var size: Int64?
    var pieceHashes: PieceHashes?
    var connections: ConnectionCount?
    var limit: Int64?
    var headers: [String] = []
    var user: String?
    var password: String?
    var cookies: String?
    var userAgent: String?
    var referer: String?
    var proxy: String?
    var caCertificates: String?
    var maxSize: Int64?
    var startAt: Milliseconds?
    var startAtText: String?
    var afterTask: TaskID?
    var onConflict: ConflictPolicy?
    var noMtime: Bool = false
    var paused: Bool = false
    var shared: Bool = false
    var groups: [UInt32] = []
    var descriptor: Int?
    var passedSource: String?
}

/// A reference-counted box that all copies of a specification share.
private final class Details: Sendable, Equatable {
    let values: DetailValues

    init(_ values: DetailValues) { self.values = values }

    static func == (one: Details, other: Details) -> Bool { one === other || one.values == other.values }
}

// MARK: - Rarely used options

extension TaskSpecification {
    /// Whether all options but kind, URL, output, directory, priority, batch and key have their default values.
    public var isPlain: Bool { details == nil }

    /// Changes any number of the options covered by ``isPlain`` with a single copy.
    mutating func change(_ body: (inout DetailValues) throws -> Void) rethrows {
        var values = details?.values ?? .default
        try body(&values)
        details = values == .default ? nil : Details(values)
    }

    /// Download: whether ``url`` points to a Metalink (RFC 5854), whose described file is then downloaded. Options of
    /// the task take precedence over those of the Metalink.
    public var metalink: Bool {
        get { details?.values.metalink ?? false }
        set { change { $0.metalink = newValue } }
    }
    /// Download: other URLs of the identical file, in order of preference. Bytes from several sources are combined only
    /// if a digest of the whole file is known. Without a digest a mirror replaces a failing URL, and the download
    /// restarts from the beginning.
    public var mirrors: [String] {
        get { details?.values.mirrors ?? [] }
        set { change { $0.mirrors = newValue } }
    }
    /// Upload: the absolute path of the source.
    public var file: String? {
        get { details?.values.file }
        set { change { $0.file = newValue } }
    }
    /// Upload: `PUT` or `POST`. The default is `POST` for a form, otherwise `PUT`.
    public var method: String? {
        get { details?.values.method }
        set { change { $0.method = newValue } }
    }
    /// Upload: the media type of the body, or of the file in a form.
    public var contentType: String? {
        get { details?.values.contentType }
        set { change { $0.contentType = newValue } }
    }
    /// Upload: the form fields sent before the file (`multipart/form-data`, RFC 7578), each `NAME=VALUE`.
    public var form: [String] {
        get { details?.values.form ?? [] }
        set { change { $0.form = newValue } }
    }
    /// Upload: the name of the file's form field. The default is `file`. Setting it makes the upload a form even
    /// without other fields.
    public var fileField: String? {
        get { details?.values.fileField }
        set { change { $0.fileField = newValue } }
    }
    /// The expected digest, `ALGORITHM:HEX`; see ``Checksum``.
    public var checksum: String? {
        get { details?.values.checksum }
        set { change { $0.checksum = newValue } }
    }
    /// Download: the URL of a list of digests, such as a `SHA256SUMS` file. It is an alternative to ``checksum``.
    public var checksumURL: String? {
        get { details?.values.checksumURL }
        set { change { $0.checksumURL = newValue } }
    }
    /// Download: the known size of the file in bytes.
    public var size: Int64? {
        get { details?.values.size }
        set { change { $0.size = newValue } }
    }
    /// Download: the digests of the file's pieces.
    public var pieceHashes: PieceHashes? {
        get { details?.values.pieceHashes }
        set { change { $0.pieceHashes = newValue } }
    }
    /// Download: the number of connections. The default comes from the configuration.
    public var connections: ConnectionCount? {
        get { details?.values.connections }
        set { change { $0.connections = newValue } }
    }
    /// The rate limit in bytes per second. By default only the daemon's limits apply.
    public var limit: Int64? {
        get { details?.values.limit }
        set { change { $0.limit = newValue } }
    }
    /// Extra request header lines, each `Name: value`.
    public var headers: [String] {
        get { details?.values.headers ?? [] }
        set { change { $0.headers = newValue } }
    }
    public var user: String? {
        get { details?.values.user }
        set { change { $0.user = newValue } }
    }
    public var password: String? {
        get { details?.values.password }
        set { change { $0.password = newValue } }
    }
    /// Cookies in Netscape file format. Each cookie is sent only to the hosts and paths that it names.
    public var cookies: String? {
        get { details?.values.cookies }
        set { change { $0.cookies = newValue } }
    }
    public var userAgent: String? {
        get { details?.values.userAgent }
        set { change { $0.userAgent = newValue } }
    }
    public var referer: String? {
        get { details?.values.referer }
        set { change { $0.referer = newValue } }
    }
    /// The proxy URL: `http://`, `https://`, `socks5://` or `socks5h://` with host and port.
    public var proxy: String? {
        get { details?.values.proxy }
        set { change { $0.proxy = newValue } }
    }
    /// PEM text with the CA certificates to trust instead of the system's.
    public var caCertificates: String? {
        get { details?.values.caCertificates }
        set { change { $0.caCertificates = newValue } }
    }
    /// The maximum size in bytes. A larger response body fails with `too-large`.
    public var maxSize: Int64? {
        get { details?.values.maxSize }
        set { change { $0.maxSize = newValue } }
    }
    /// The earliest start, in milliseconds since 1970. The task waits until then.
    public var startAt: Milliseconds? {
        get { details?.values.startAt }
        set { change { $0.startAt = newValue } }
    }
    /// Queue file entry: the original text of ``startAt``, where it is relative to the time of reading (`22:00`,
    /// `+2h`). Applying a file again with the same text does not postpone the start.
    public var startAtText: String? {
        get { details?.values.startAtText }
        set { change { $0.startAtText = newValue } }
    }
    /// The dependency: the task waits until this one has completed.
    public var afterTask: TaskID? {
        get { details?.values.afterTask }
        set { change { $0.afterTask = newValue } }
    }
    public var onConflict: ConflictPolicy? {
        get { details?.values.onConflict }
        set { change { $0.onConflict = newValue } }
    }
    /// Download: whether a relative ``directory`` is beneath the common directory, which holds files of other owners
    /// too, instead of the owner's directory. It is used only when the task is added; afterwards ``directory`` contains
    /// the result.
    public var shared: Bool {
        get { details?.values.shared ?? false }
        set { change { $0.shared = newValue } }
    }
    /// The group ids of the user who added the task. They determine the user's read and write permissions. Stored with
    /// the secrets; not a JSON field.
    package var groups: [UInt32] {
        get { details?.values.groups ?? [] }
        set { change { $0.groups = newValue } }
    }
    /// Upload, in `task.add` only: the index, from 0, of the open file of the last `source.receive` that is ``file``.
    /// The daemon uses this file descriptor where the user's permissions for the path are insufficient or unknown.
    public var descriptor: Int? {
        get { details?.values.descriptor }
        set { change { $0.descriptor = newValue } }
    }
    /// Upload: the name under which the daemon keeps the open file that a client passed. Stored with the secrets; not a
    /// JSON field.
    package var passedSource: String? {
        get { details?.values.passedSource }
        set { change { $0.passedSource = newValue } }
    }
    /// Whether the file keeps its time of arrival as its modification time, instead of the time given by the server.
    public var noMtime: Bool {
        get { details?.values.noMtime ?? false }
        set { change { $0.noMtime = newValue } }
    }
    /// Whether the task is added in the paused state.
    public var paused: Bool {
        get { details?.values.paused ?? false }
        set { change { $0.paused = newValue } }
    }
}

extension TaskSpecification {
    /// The likely file name, as far as it is known before the first response.
    public var expectedName: String {
        if let output { return output }
        let name = FileName.fromURL(url)
        // A Metalink is usually named after its file.
        guard metalink, let dot = name.lastIndex(of: "."), dot != name.startIndex,
            [".meta4", ".metalink"].contains(name[dot...].lowercased())
        else { return name }
        return FileName.makeSafe(String(name[..<dot])) ?? name
    }
}

// MARK: - Checking

extension TaskSpecification {
    /// The limits of a task's fields. Lengths are in bytes.
    public enum Limit {
        public static let headers = 64
        public static let headerLength = 8192
        public static let nameLength = 255
        public static let startAtTextLength = 64
        public static let secretLength = 4096
        public static let certificatesLength = 262_144
        public static let mirrors = 64
        /// The maximum number of form fields besides the file.
        public static let formFields = 256
        /// The maximum size of all form fields together, in bytes.
        public static let formLength = 262_144
        /// The maximum size of the cookies, in bytes.
        public static let cookiesLength = 262_144
        /// The maximum size of all mirror URLs together, in bytes.
        public static let mirrorsLength = 65_536
    }

    /// Validates every field that can be validated without the daemon's configuration.
    ///
    /// - Returns: the parsed URL.
    /// - Throws: the first ``FieldError``, with the field's JSON name.
    @discardableResult
    public func check() throws(FieldError) -> TaskAddress {
        let address = try TaskAddress(parsing: url)
        if isPlain, kind == .download {
            try checkNames()
            return address
        }
        switch kind {
        case .download:
            try Self.refuse(file, "file", "belongs to uploads; a download takes --output")
            try Self.refuse(method, "method", "belongs to uploads")
            try Self.refuse(contentType, "contentType", "belongs to uploads")
            try Self.refuse(form.first, "form", "belongs to uploads")
            try Self.refuse(fileField, "fileField", "belongs to uploads")
            try Self.refuse(descriptor, "descriptor", "belongs to uploads")
        case .upload:
            try Self.refuse(output, "output", "belongs to downloads")
            try Self.refuse(directory, "directory", "belongs to downloads")
            try Self.refuse(checksum, "checksum", "belongs to downloads")
            try Self.refuse(metalink ? metalink : nil, "metalink", "belongs to downloads")
            try Self.refuse(mirrors.first, "mirrors", "is for downloads alone")
            try Self.refuse(checksumURL, "checksumURL", "belongs to downloads")
            try Self.refuse(size, "size", "belongs to downloads")
            try Self.refuse(pieceHashes, "pieceHashes", "is for downloads alone")
            try Self.refuse(connections, "connections", "belongs to downloads")
            guard let file, file.utf8.first == UInt8(ascii: "/") else {
                throw FieldError(field: "file", message: "give the absolute path of the file to upload")
            }
            try Self.checkText(file, "file", limit: 4095)
            try checkForm()
        }
        try checkProtocol(address)
        if let limit, limit < 1 {
            throw FieldError(field: "limit", message: "must be at least 1 byte a second")
        }
        try checkNames()
        try checkSources()
        try checkHeaders()
        try checkCookies()
        try Self.checkText(user, "user", limit: Limit.secretLength)
        try Self.checkText(password, "password", limit: Limit.secretLength)
        if let user, user.utf8.contains(UInt8(ascii: ":")) {
            throw FieldError(field: "user", message: "must not hold a colon (RFC 7617, section 2)")
        }
        if password != nil, user == nil {
            throw FieldError(field: "password", message: "needs a user beside it")
        }
        try Self.checkText(userAgent, "userAgent", limit: Limit.headerLength)
        try Self.checkText(referer, "referer", limit: Limit.headerLength)
        try Self.checkText(contentType, "contentType", limit: Limit.nameLength)
        try checkProxy()
        if let caCertificates {
            guard caCertificates.utf8.count <= Limit.certificatesLength else {
                throw FieldError(field: "caCertificates", message: "is longer than 256 KiB")
            }
            guard caCertificates.contains("-----BEGIN CERTIFICATE-----") else {
                throw FieldError(field: "caCertificates", message: "holds no certificate in PEM form")
            }
            // The certificates are stored in clear text, so a private key is refused.
            guard !caCertificates.contains("PRIVATE KEY-----") else {
                throw FieldError(field: "caCertificates", message: "holds a private key; leave it out")
            }
        }
        if let maxSize, maxSize < 0 {
            throw FieldError(field: "maxSize", message: "must not be negative")
        }
        if let startAt, startAt < 0 || startAt >= 253_402_300_800_000 {
            throw FieldError(field: "startAt", message: "must lie between 1970 and 9999, in milliseconds")
        }
        if let startAtText, startAtText.utf8.count > Limit.startAtTextLength {
            throw FieldError(
                field: "startAtText", message: "must not be longer than \(Limit.startAtTextLength) bytes")
        }
        return address
    }

    private func checkNames() throws(FieldError) {
        if let output { try FileName.check(output) }
        if let directory { try FileName.checkDirectory(directory) }
        try Self.checkText(batch, "batch", limit: Limit.nameLength, empty: false)
        try Self.checkText(key, "key", limit: Limit.nameLength, empty: false)
    }

    static func refuse<Value>(_ value: Value?, _ field: String, _ message: String) throws(FieldError) {
        if value != nil { throw FieldError(field: field, message: message) }
    }

    /// Checks the options of the sources and of the expected content: mirrors, digests, size, pieces and connections.
    private func checkSources() throws(FieldError) {
        guard mirrors.count <= Limit.mirrors else {
            throw FieldError(field: "mirrors", message: "are more than \(Limit.mirrors)")
        }
        guard mirrors.reduce(0, { $0 + $1.utf8.count }) <= Limit.mirrorsLength else {
            throw FieldError(field: "mirrors", message: "are longer than \(Limit.mirrorsLength / 1024) KiB together")
        }
        for (index, mirror) in mirrors.enumerated() { _ = try TaskAddress(parsing: mirror, field: "mirrors[\(index)]") }
        if let checksum { _ = try Checksum(parsing: checksum) }
        if let checksumURL {
            _ = try TaskAddress(parsing: checksumURL, field: "checksumURL")
            guard checksum == nil else {
                throw FieldError(field: "checksumURL", message: "stands in place of a checksum; give one of them")
            }
            guard !metalink else {
                throw FieldError(
                    field: "checksumURL",
                    message: "goes by the file's URL, which a Metalink alone knows; give a checksum")
            }
        }
        if let size, size < 0 { throw FieldError(field: "size", message: "must not be negative") }
        try pieceHashes?.check(size: size)
        try connections?.check(field: "connections")
    }

    /// Checks a text's length and refuses control characters, which must not reach a request or a log.
    static func checkText(
        _ text: String?, _ field: String, limit: Int, empty: Bool = true
    ) throws(FieldError) {
        guard let text else { return }
        if !empty, text.isEmpty { throw FieldError(field: field, message: "is empty") }
        guard text.utf8.count <= limit else {
            throw FieldError(field: field, message: "is longer than \(limit) bytes")
        }
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw FieldError(field: field, message: "holds a control character, such as a line break")
        }
    }

    /// Checks the header lines (RFC 9110, section 5): a token, a colon, and a value without control characters other
    /// than tab. Refuses headers that the engine sets itself.
    private func checkHeaders() throws(FieldError) {
        guard headers.count <= Limit.headers else {
            throw FieldError(field: "headers", message: "are more than \(Limit.headers)")
        }
        for (index, header) in headers.enumerated() {
            let field = "headers[\(index)]"
            guard header.utf8.count <= Limit.headerLength else {
                throw FieldError(field: field, message: "is longer than \(Limit.headerLength) bytes")
            }
            guard !header.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else {
                throw FieldError(field: field, message: "holds a control character, such as a line break")
            }
            guard let (name, _) = Self.splitHeader(header) else {
                throw FieldError(field: field, message: "is not of the form 'Name: value'")
            }
            if Self.engineHeaders.contains(name.lowercased()) {
                throw FieldError(field: field, message: "\(name) is set by the daemon itself")
            }
        }
    }

    /// Splits a header line.
    ///
    /// - Returns: the name, and the value without surrounding white space; `nil` where the name is not a token.
    public static func splitHeader(_ header: String) -> (name: String, value: String)? {
        let bytes = Array(header.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0 else { return nil }
        let marks = Array("!#$%&'*+-.^_`|~".utf8)
        guard bytes[..<colon].allSatisfy({ $0.isLetterOrDigit || marks.contains($0) }) else { return nil }
        var value = bytes[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        return (String(decoding: bytes[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
    }

    /// Headers that control framing and resumption. A user's own value would break the engine's guarantees.
    private static let engineHeaders: Set<String> = [
        "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "connection", "te",
        "trailer", "upgrade", "expect",
    ]

    private func checkProxy() throws(FieldError) {
        guard let proxy else { return }
        try Self.checkText(proxy, "proxy", limit: 2048)
        let schemes = ["http", "https", "socks5", "socks5h"]
        guard let separator = proxy.firstRange(of: "://"),
            schemes.contains(proxy[..<separator.lowerBound].lowercased())
        else {
            throw FieldError(
                field: "proxy", message: "must begin with one of \(schemes.map { $0 + "://" }.joined(separator: ", "))")
        }
        let plain = "http" + proxy[separator.lowerBound...]
        _ = try TaskAddress(parsing: plain, field: "proxy")
    }
}
