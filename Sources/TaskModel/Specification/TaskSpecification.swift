/// The options of a task as the user requested them: an entry of `task.add`, of a queue file or of a list.
///
/// The JSON keys are the names of the properties. Absent keys have the default values. `TaskField/all` declares the
/// fields. The rarely used options are properties too; see ``DetailValues``.
@dynamicMemberLookup
public struct TaskSpecification: Sendable, Equatable {
    /// The direction of the transfer.
    public var kind: TaskKind = .download
    /// The URL: of the file to download, or the one to which an upload is sent.
    public var url: String
    /// Download: the file name. The default is the name in Content-Disposition, otherwise the last segment of the URL.
    public var output: String?
    /// Download: the target directory. A relative path is beneath the configured directory; an absolute path must be
    /// beneath one of the configured roots; a path that is `~` or begins with `~/` is beneath the owner's own
    /// directory, a subdirectory of the configured one. The default is the configured directory.
    public var directory: String?
    /// The priority among the owner's tasks.
    public var priority: TaskPriority = .normal
    /// The name that all tasks of a batch share.
    public var batch: String?
    /// An idempotency key chosen by the client. A second task with the same key is not added.
    public var key: String?
    /// The rarely used options; `nil` where all of them have their default values. This saves memory, since the queue
    /// can hold millions of tasks.
    @usableFromInline var details: Details?

    /// Creates a specification in which every other option has its default value.
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

// MARK: - Rarely used options

extension TaskSpecification {
    /// Whether all options but kind, URL, output, directory, priority, batch and key have their default values.
    public var isPlain: Bool { details == nil }

    /// Changes any number of the options covered by ``isPlain`` with a single copy.
    mutating func change(_ body: (inout DetailValues) throws -> Void) rethrows {
        var values = details?.values ?? .default
        try body(&values)
        details = Details.holding(values, sharing: details)
    }

    /// Whether the options covered by ``isPlain`` are those of another task.
    package func hasRareValues(of other: TaskSpecification) -> Bool { details == other.details }

    /// Shares the memory of the options covered by ``isPlain`` with another task that has the same.
    package mutating func shareRareValues(with other: TaskSpecification) {
        if hasRareValues(of: other) { details = other.details }
    }

    /// The rarely used options, such as `headers` or `checksum`; see ``DetailValues``.
    public subscript<Value>(dynamicMember path: WritableKeyPath<DetailValues, Value>) -> Value {
        @inlinable get {
            // An expression with `??` would copy all values.
            guard let details else { return DetailValues.default[keyPath: path] }
            return details.values[keyPath: path]
        }
        set { change { $0[keyPath: path] = newValue } }
    }
}

extension TaskSpecification {
    /// The likely file name, as far as it is known before the first response.
    public var expectedName: String {
        if let output { return output }
        let name = FileName.fromURL(url)
        // A Metalink is usually named after its file.
        guard self.metalink, let dot = name.lastIndex(of: "."), dot != name.startIndex,
            [".meta4", ".metalink"].contains(name[dot...].lowercased())
        else { return name }
        return FileName.makeSafe(String(name[..<dot])) ?? name
    }
}

// MARK: - Checking

extension TaskSpecification {
    /// The limits of a task's fields. Lengths are in bytes.
    public enum Limit {
        /// The maximum number of header fields.
        public static let headers = 64
        /// The maximum length of a header field.
        public static let headerLength = 8192
        /// The maximum length of a file name, batch or key.
        public static let nameLength = 255
        /// The longest time-out, in milliseconds.
        public static let timeout: Milliseconds = 7 * 86_400_000
        /// The numbers of attempts without progress that a task may have.
        package static let attempts = 1...1_000_000
        /// The maximum length of a start time.
        public static let startAtTextLength = 64
        /// The maximum length of a user name or password.
        public static let secretLength = 4096
        /// The maximum size of the certificates.
        public static let certificatesLength = 262_144
        /// The maximum number of mirrors.
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
        if isURLAlone { return address }
        let fields = setFields
        for field in fields.intersection(kind == .download ? .ofUploads : .ofDownloads) {
            if let refusal = field.kinds.refusal { throw FieldError(field: field.name, message: refusal) }
        }
        if kind == .upload {
            guard let file = self.file, file.utf8.first == UInt8(ascii: "/") else {
                throw FieldError(field: "file", message: "give the absolute path of the file to upload")
            }
            try check(fields.intersection(.ofUploads))
        }
        try refuseFieldsOfHTTP(fields, address)
        try check(fields.subtracting(.ofUploads))
        return address
    }

    private func check(_ fields: TaskFieldSet) throws(FieldError) {
        for field in fields.intersection(.checked) { try field.check?.run(self, field) }
    }

    /// Refuses HTTP-only options where no HTTP request is made, instead of ignoring them silently.
    private func refuseFieldsOfHTTP(_ fields: TaskFieldSet, _ address: TaskAddress) throws(FieldError) {
        if address.isHTTP { return }
        let refused = fields.intersection(speaksHTTP ? .ofHTTPTargets : .ofHTTP)
        for field in refused {
            throw FieldError(field: field.name, message: "is not supported for \(address.scheme)")
        }
    }

    /// Whether at least one URL uses HTTP: the URL itself, a mirror, or the list of digests.
    package var speaksHTTP: Bool {
        func usesHTTP(_ url: String) -> Bool { (try? TaskAddress(parsing: url))?.isHTTP == true }
        return usesHTTP(url) || self.checksumURL.map(usesHTTP) ?? false || self.mirrors.contains(where: usesHTTP)
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

    /// Whether the upload is sent as a form (`multipart/form-data`).
    public var isForm: Bool { !self.form.isEmpty || self.fileField != nil }

    /// Splits a form field at its first `=`.
    ///
    /// - Returns: the name and the value; `nil` where there is no `=` or the name is empty.
    public static func splitField(_ field: String) -> (name: String, value: String)? {
        let bytes = field.utf8
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals != bytes.startIndex else { return nil }
        return (String(field[..<equals]), String(field[bytes.index(after: equals)...]))
    }
}
