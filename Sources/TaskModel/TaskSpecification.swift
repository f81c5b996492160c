/// What a person asked for: one entry of `task.add`, of a queue file, of a list.
///
/// In JSON the fields stand under these names; absent ones take their defaults.
public struct TaskSpecification: Sendable, Equatable {
    public var kind: TaskKind = .download
    public var url: String
    /// Download: the file's name. Absent: Content-Disposition, then the URL's last segment.
    public var output: String?
    /// Download: the place. Relative: beneath the configured directory; absolute: beneath one of the roots; `~`, alone or
    /// before a slash: beneath the directory of the task's owner. Absent: the configured directory itself.
    public var directory: String?
    public var priority: TaskPriority = .normal
    /// The name that a group of tasks shares.
    public var batch: String?
    /// The caller's own name for the task; a second one with the same key is not added.
    public var key: String?
    /// `nil` where everything that few tasks ask for is as it is by default: tasks come in millions.
    private var details: Details?

    public init(kind: TaskKind = .download, url: String) {
        self.kind = kind
        self.url = url
    }

    /// A download of which nothing but the URL is said.
    public var isURLAlone: Bool {
        isPlain && kind == .download && priority == .normal && output == nil && directory == nil && batch == nil
            && key == nil
    }
}

/// What few tasks ask for, under the names of ``TaskSpecification``.
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

/// Shared by the copies of a specification.
private final class Details: Sendable, Equatable {
    let values: DetailValues

    init(_ values: DetailValues) { self.values = values }

    static func == (one: Details, other: Details) -> Bool { one === other || one.values == other.values }
}

// MARK: - What few tasks ask for

extension TaskSpecification {
    /// Everything but kind, URL, name, directory, priority, batch and key is as it is by default.
    public var isPlain: Bool { details == nil }

    /// Sets everything that ``isPlain`` is about at once.
    mutating func change(_ body: (inout DetailValues) throws -> Void) rethrows {
        var values = details?.values ?? .default
        try body(&values)
        details = values == .default ? nil : Details(values)
    }

    /// Download: at ``url`` lies a Metalink (RFC 5854), and the file that it describes is fetched. What is asked for here
    /// goes before what the Metalink says.
    public var metalink: Bool {
        get { details?.values.metalink ?? false }
        set { change { $0.metalink = newValue } }
    }
    /// Download: other URLs of the very same file, best first. Bytes of several sources are joined only under a hash
    /// of the whole file; without one a mirror stands in for a URL that fails, and the file begins anew.
    public var mirrors: [String] {
        get { details?.values.mirrors ?? [] }
        set { change { $0.mirrors = newValue } }
    }
    /// Upload: the absolute path of the source.
    public var file: String? {
        get { details?.values.file }
        set { change { $0.file = newValue } }
    }
    /// Upload: `PUT` or `POST`; absent: `POST` for a form, otherwise `PUT`.
    public var method: String? {
        get { details?.values.method }
        set { change { $0.method = newValue } }
    }
    /// Upload: the media type of the body, or of the file in a form.
    public var contentType: String? {
        get { details?.values.contentType }
        set { change { $0.contentType = newValue } }
    }
    /// Upload: the fields that stand before the file in a form (`multipart/form-data`, RFC 7578), `NAME=VALUE`.
    public var form: [String] {
        get { details?.values.form ?? [] }
        set { change { $0.form = newValue } }
    }
    /// Upload: the name that the file has in the form; absent: `file`. Makes it a form by itself.
    public var fileField: String? {
        get { details?.values.fileField }
        set { change { $0.fileField = newValue } }
    }
    /// `ALGORITHM:HEX`, see ``Checksum``.
    public var checksum: String? {
        get { details?.values.checksum }
        set { change { $0.checksum = newValue } }
    }
    /// Download: the URL of a list of digests, such as a `SHA256SUMS` file, in place of ``checksum``.
    public var checksumURL: String? {
        get { details?.values.checksumURL }
        set { change { $0.checksumURL = newValue } }
    }
    /// Download: the bytes that the file is known to have.
    public var size: Int64? {
        get { details?.values.size }
        set { change { $0.size = newValue } }
    }
    /// Download: the digests of the file's pieces.
    public var pieceHashes: PieceHashes? {
        get { details?.values.pieceHashes }
        set { change { $0.pieceHashes = newValue } }
    }
    /// Download: absent, what the configuration says.
    public var connections: ConnectionCount? {
        get { details?.values.connections }
        set { change { $0.connections = newValue } }
    }
    /// Bytes a second at most; absent, as fast as the daemon lets it.
    public var limit: Int64? {
        get { details?.values.limit }
        set { change { $0.limit = newValue } }
    }
    /// Header lines, `Name: value`.
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
    /// Cookies as a file of Netscape's format has them; each goes to the hosts and paths that it names.
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
    /// `http://`, `https://`, `socks5://` or `socks5h://` with host and port.
    public var proxy: String? {
        get { details?.values.proxy }
        set { change { $0.proxy = newValue } }
    }
    /// Certificates to trust in place of the system's, PEM text.
    public var caCertificates: String? {
        get { details?.values.caCertificates }
        set { change { $0.caCertificates = newValue } }
    }
    /// Bytes; a larger answer fails with `too-large`.
    public var maxSize: Int64? {
        get { details?.values.maxSize }
        set { change { $0.maxSize = newValue } }
    }
    /// Milliseconds since 1970; the task waits until then.
    public var startAt: Milliseconds? {
        get { details?.values.startAt }
        set { change { $0.startAt = newValue } }
    }
    /// Entry of a queue file: how ``startAt`` was written, where it counts from the moment of reading (`22:00`, `+2h`).
    /// The same text in a file that is applied again does not put the start off.
    public var startAtText: String? {
        get { details?.values.startAtText }
        set { change { $0.startAtText = newValue } }
    }
    /// The task waits until this one has completed.
    public var afterTask: TaskID? {
        get { details?.values.afterTask }
        set { change { $0.afterTask = newValue } }
    }
    public var onConflict: ConflictPolicy? {
        get { details?.values.onConflict }
        set { change { $0.onConflict = newValue } }
    }
    /// Download: a relative ``directory`` is beneath the common one, where others have files too, and not beneath the
    /// owner's. Counts when the task is added; from then on ``directory`` tells.
    public var shared: Bool {
        get { details?.values.shared ?? false }
        set { change { $0.shared = newValue } }
    }
    /// The groups of whoever asked, for judging what she may read and where she may write. Kept with the secrets, and no
    /// field of the JSON.
    package var groups: [UInt32] {
        get { details?.values.groups ?? [] }
        set { change { $0.groups = newValue } }
    }
    /// Upload, in `task.add` alone: which of the open files of the last `source.receive` is ``file``, from 0 on. The
    /// daemon takes it where the user's rights to the path are not enough, or not known.
    public var descriptor: Int? {
        get { details?.values.descriptor }
        set { change { $0.descriptor = newValue } }
    }
    /// Upload: the name under which the daemon keeps the open file that was passed to it. Kept with the secrets, and no
    /// field of the JSON.
    package var passedSource: String? {
        get { details?.values.passedSource }
        set { change { $0.passedSource = newValue } }
    }
    /// Leave the file's time at the moment of its arrival.
    public var noMtime: Bool {
        get { details?.values.noMtime ?? false }
        set { change { $0.noMtime = newValue } }
    }
    /// Add it without starting it.
    public var paused: Bool {
        get { details?.values.paused ?? false }
        set { change { $0.paused = newValue } }
    }
}

extension TaskSpecification {
    /// The file's name, as far as it can be said before a server is asked.
    public var expectedName: String {
        if let output { return output }
        let name = FileName.fromURL(url)
        // A Metalink is mostly named after its file.
        guard metalink, let dot = name.lastIndex(of: "."), dot != name.startIndex,
            [".meta4", ".metalink"].contains(name[dot...].lowercased())
        else { return name }
        return FileName.makeSafe(String(name[..<dot])) ?? name
    }
}

// MARK: - Checking

extension TaskSpecification {
    /// Limits on what one task may carry.
    public enum Limit {
        public static let headers = 64
        public static let headerLength = 8192
        public static let nameLength = 255
        public static let startAtTextLength = 64
        public static let secretLength = 4096
        public static let certificatesLength = 262_144
        public static let mirrors = 64
        /// Fields of a form beside the file.
        public static let formFields = 256
        /// Bytes of all those fields together.
        public static let formLength = 262_144
        /// Bytes.
        public static let cookiesLength = 262_144
        /// Bytes of all mirrors together.
        public static let mirrorsLength = 65_536
    }

    /// Judges every field that can be judged without knowing the daemon.
    ///
    /// - Returns: the URL, taken apart.
    /// - Throws: the first ``FieldError``, under the field's JSON name.
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
            // They are kept, and not as a secret.
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

    /// Where the file comes from, and what it must be when it is there.
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

    /// No control character gets into anything that later reaches a request or a log.
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

    /// RFC 9110, section 5: a token, a colon, a value without CR, LF or NUL. What the engine owns is refused.
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

    /// - Returns: name and value without the white space around it, or `nil` where the name is not a token.
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

    /// Fields that decide about framing and resumption: a person's own value would break the promises.
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
