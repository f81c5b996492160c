private typealias Limit = TaskSpecification.Limit

/// The check of a field's value, where the value is not the default.
struct FieldCheck: Sendable {
    /// Throws the ``FieldError`` of an invalid value.
    let run: @Sendable (_ task: TaskSpecification, _ field: TaskField) throws(FieldError) -> Void

    private init(_ run: @escaping @Sendable (TaskSpecification, TaskField) throws(FieldError) -> Void) {
        self.run = run
    }

    /// Creates the check of a text; see ``checkText(_:_:limit:mayBeEmpty:)``.
    static func text(limit: Int, mayBeEmpty: Bool = true) -> FieldCheck {
        FieldCheck { task, field throws(FieldError) in
            let text = task.withMemory(field.operations.text)
            try checkText(text, field.name, limit: limit, mayBeEmpty: mayBeEmpty)
        }
    }

    /// Checks a text's length and refuses control characters, which must not reach a request or a log.
    static func checkText(
        _ text: String?, _ field: String, limit: Int, mayBeEmpty: Bool = true
    ) throws(FieldError) {
        guard let text else { return }
        if !mayBeEmpty, text.isEmpty { throw FieldError(field: field, message: "is empty") }
        guard text.utf8.count <= limit else {
            throw FieldError(field: field, message: "is longer than \(limit) bytes")
        }
        guard !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw FieldError(field: field, message: "contains a control character, such as a line break")
        }
    }
}

// MARK: - Place and source

extension FieldCheck {
    static let output = FieldCheck { task, _ throws(FieldError) in
        if let output = task.output { try FileName.check(output) }
    }

    static let directory = FieldCheck { task, _ throws(FieldError) in
        if let directory = task.directory { try FileName.checkDirectory(directory) }
    }

    static let file = FieldCheck { task, field throws(FieldError) in
        try checkText(task.file, field.name, limit: 4095)
    }

    static let mirrors = FieldCheck { task, _ throws(FieldError) in
        let mirrors = task.mirrors
        guard mirrors.count <= Limit.mirrors else {
            throw FieldError(field: "mirrors", message: "must be at most \(Limit.mirrors) URLs")
        }
        guard mirrors.reduce(0, { $0 + $1.utf8.count }) <= Limit.mirrorsLength else {
            throw FieldError(field: "mirrors", message: "must be at most \(Limit.mirrorsLength / 1024) KiB in total")
        }
        for (index, mirror) in mirrors.enumerated() { _ = try TaskAddress(parsing: mirror, field: "mirrors[\(index)]") }
    }

    static let checksum = FieldCheck { task, _ throws(FieldError) in
        if let checksum = task.checksum { _ = try Checksum(parsing: checksum) }
    }

    static let checksumURL = FieldCheck { task, field throws(FieldError) in
        guard let checksumURL = task.checksumURL else { return }
        _ = try TaskAddress(parsing: checksumURL, field: field.name)
        guard task.checksum == nil else {
            throw FieldError(field: field.name, message: "cannot be combined with a checksum; give one of them")
        }
        guard !task.metalink else {
            throw FieldError(
                field: field.name, message: "needs the file's URL, which only the Metalink contains; give a checksum")
        }
    }

    static let size = FieldCheck { task, field throws(FieldError) in
        if let size = task.size, size < 0 { throw FieldError(field: field.name, message: "must not be negative") }
    }

    static let pieceHashes = FieldCheck { task, _ throws(FieldError) in
        try task.pieceHashes?.check(size: task.size)
    }

    static let update = FieldCheck { task, _ throws(FieldError) in
        guard task.onConflict == nil || task.onConflict == .overwrite else {
            throw FieldError(field: "onConflict", message: "does not apply to an update, which replaces the file")
        }
    }

    static let connections = FieldCheck { task, field throws(FieldError) in
        try task.connections?.check(field: field.name)
    }

    static let maxSize = FieldCheck { task, field throws(FieldError) in
        if let size = task.maxSize, size < 0 { throw FieldError(field: field.name, message: "must not be negative") }
    }
}

// MARK: - The body of an upload

extension FieldCheck {
    static let method = FieldCheck { task, field throws(FieldError) in
        guard task.method == "PUT" || task.method == "POST" else {
            throw FieldError(field: field.name, message: "must be PUT or POST")
        }
        if task.isForm, task.method == "PUT" {
            throw FieldError(field: field.name, message: "must be POST for a form")
        }
    }

    static let form = FieldCheck { task, _ throws(FieldError) in
        let form = task.form
        guard form.count <= Limit.formFields else {
            throw FieldError(field: "form", message: "has more than \(Limit.formFields) fields")
        }
        guard form.reduce(0, { $0 + $1.utf8.count }) <= Limit.formLength else {
            throw FieldError(field: "form", message: "is longer than \(Limit.formLength / 1024) KiB")
        }
        for (index, field) in form.enumerated() {
            // The message leaves out the field's text, which may be a secret.
            guard let (name, value) = TaskSpecification.splitField(field) else {
                throw FieldError(field: "form[\(index)]", message: "is not of the form NAME=VALUE")
            }
            try checkText(name, "form[\(index)]", limit: Limit.nameLength)
            guard !value.utf8.contains(0) else {
                throw FieldError(field: "form[\(index)]", message: "contains a NUL byte")
            }
        }
    }
}

// MARK: - Identity and way

extension FieldCheck {
    /// Checks the header lines (RFC 9110, section 5): a token, a colon, and a value without control characters other
    /// than tab. Refuses headers that the engine sets itself.
    static let headers = FieldCheck { task, _ throws(FieldError) in
        let headers = task.headers
        guard headers.count <= Limit.headers else {
            throw FieldError(field: "headers", message: "must be at most \(Limit.headers) lines")
        }
        for (index, header) in headers.enumerated() {
            let field = "headers[\(index)]"
            guard header.utf8.count <= Limit.headerLength else {
                throw FieldError(field: field, message: "is longer than \(Limit.headerLength) bytes")
            }
            guard !header.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else {
                throw FieldError(field: field, message: "contains a control character, such as a line break")
            }
            guard let (name, _) = TaskSpecification.splitHeader(header) else {
                throw FieldError(field: field, message: "is not of the form \"Name: value\"")
            }
            if engineHeaders.contains(name.lowercased()) {
                throw FieldError(field: field, message: "\(name) is set by the daemon itself")
            }
        }
    }

    /// Headers that control framing and resumption. A user's own value would break the engine's guarantees.
    private static let engineHeaders: Set<String> = [
        "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "connection", "te",
        "trailer", "upgrade", "expect",
    ]

    static let user = FieldCheck { task, field throws(FieldError) in
        guard let user = task.user else { return }
        try checkText(user, field.name, limit: Limit.secretLength)
        if user.utf8.contains(UInt8(ascii: ":")) {
            throw FieldError(
                field: field.name, message: "must not contain a colon; the password comes from --password-file FILE")
        }
    }

    static let password = FieldCheck { task, field throws(FieldError) in
        try checkText(task.password, field.name, limit: Limit.secretLength)
        if task.user == nil { throw FieldError(field: field.name, message: "needs a user") }
    }

    /// Checks the size of the cookies and their conflict with a `Cookie` header. The engine, which sends the cookies,
    /// validates each line.
    static let cookies = FieldCheck { task, field throws(FieldError) in
        guard let cookies = task.cookies else { return }
        guard cookies.utf8.count <= Limit.cookiesLength else {
            throw FieldError(field: field.name, message: "must be at most \(Limit.cookiesLength / 1024) KiB")
        }
        guard !task.headers.contains(where: { TaskSpecification.splitHeader($0)?.name.lowercased() == "cookie" })
        else {
            throw FieldError(field: field.name, message: "cannot be combined with a Cookie header; give one of them")
        }
    }

    static let netrc = FieldCheck { task, _ throws(FieldError) in
        if let netrc = task.netrc { _ = try Netrc(parsing: netrc) }
    }

    static let proxy = FieldCheck { task, field throws(FieldError) in
        guard let proxy = task.proxy else { return }
        try checkText(proxy, field.name, limit: 2048)
        let schemes = ["http", "https", "socks5", "socks5h"]
        guard let separator = proxy.firstRange(of: "://"),
            schemes.contains(proxy[..<separator.lowerBound].lowercased())
        else {
            throw FieldError(
                field: field.name,
                message: "must begin with one of \(schemes.map { $0 + "://" }.joined(separator: ", "))")
        }
        let plain = "http" + proxy[separator.lowerBound...]
        _ = try TaskAddress(parsing: plain, field: field.name)
    }

    static let certificates = FieldCheck { task, field throws(FieldError) in
        guard let certificates = task.caCertificates else { return }
        guard certificates.utf8.count <= Limit.certificatesLength else {
            throw FieldError(field: field.name, message: "is longer than 256 KiB")
        }
        guard certificates.contains("-----BEGIN CERTIFICATE-----") else {
            throw FieldError(field: field.name, message: "contains no certificate in PEM format")
        }
        // The certificates are stored in clear text, so a private key is refused.
        guard !certificates.contains("PRIVATE KEY-----") else {
            throw FieldError(field: field.name, message: "contains a private key; remove it")
        }
    }
}

// MARK: - Pace and time

extension FieldCheck {
    static let limit = FieldCheck { task, field throws(FieldError) in
        if let limit = task.limit, limit < 1 {
            throw FieldError(field: field.name, message: "must be at least 1 byte per second")
        }
    }

    static let connectTimeout = FieldCheck { task, field throws(FieldError) in
        try checkTimeout(task.connectTimeout, field.name)
    }

    static let stallTimeout = FieldCheck { task, field throws(FieldError) in
        try checkTimeout(task.stallTimeout, field.name)
    }

    private static func checkTimeout(_ time: Milliseconds?, _ field: String) throws(FieldError) {
        guard let time, !(1...Limit.timeout).contains(time) else { return }
        throw FieldError(field: field, message: "must be a time from 1ms to 7d")
    }

    static let maxAttempts = FieldCheck { task, field throws(FieldError) in
        guard let attempts = task.maxAttempts, !Limit.attempts.contains(attempts) else { return }
        throw FieldError(field: field.name, message: "must be a whole number from 1 to \(Limit.attempts.upperBound)")
    }

    static let startAt = FieldCheck { task, field throws(FieldError) in
        if let startAt = task.startAt, startAt < 0 || startAt >= 253_402_300_800_000 {
            throw FieldError(
                field: field.name, message: "must be between the years 1970 and 9999, in milliseconds since 1970")
        }
    }

    static let startAtText = FieldCheck { task, field throws(FieldError) in
        if let text = task.startAtText, text.utf8.count > Limit.startAtTextLength {
            throw FieldError(
                field: field.name, message: "must not be longer than \(Limit.startAtTextLength) bytes")
        }
    }
}
