/// The parts of a specification that a task needs for its transfer but that must not be shown. They are stored
/// separately from the record and deleted when the task completes or is removed.
public struct TaskSecrets: Codable, Sendable, Equatable {
    /// The full URL, where the redacted one differs.
    public var url: String?
    /// All mirrors with their full URLs, where at least one redacted URL differs.
    public var mirrors: [String]?
    /// The full URL of the list of digests, where the redacted one differs.
    public var checksumURL: String?
    public var headers: [String]?
    public var user: String?
    public var password: String?
    public var proxy: String?
    /// The full referrer URL, where the redacted one differs.
    public var referer: String?
    public var cookies: String?
    /// The form fields of an upload. Names are included, since they can reveal the kind of their values.
    public var form: [String]?
    /// The group ids of the user who added the task. They are not secret, but no other component needs them.
    package var groups: [UInt32]?
    /// The name of the open file that a client passed for an upload.
    package var passedSource: String?

    public var isEmpty: Bool { url == nil && isOfURLAlone }

    var isOfURLAlone: Bool {
        mirrors == nil && checksumURL == nil && headers == nil && user == nil && password == nil && proxy == nil
            && referer == nil && cookies == nil && form == nil && groups == nil
            && passedSource == nil
    }

    public init() {}
}

extension TaskSpecification {
    /// Moves the secrets out of the specification, which can then be shown, logged and stored.
    public mutating func takeSecrets(redactedURL: String) -> TaskSecrets {
        var secrets = TaskSecrets()
        if redactedURL != url {
            secrets.url = url
            url = redactedURL
        }
        if isPlain { return secrets }
        let shownMirrors = mirrors.map(Self.redact)
        if shownMirrors != mirrors {
            secrets.mirrors = mirrors
            mirrors = shownMirrors
        }
        if let full = checksumURL, Self.redact(full) != full {
            secrets.checksumURL = full
            checksumURL = Self.redact(full)
        }
        if let full = referer, Self.redact(full) != full {
            secrets.referer = full
            referer = Self.redact(full)
        }
        if !headers.isEmpty {
            secrets.headers = headers
            headers = []
        }
        if !form.isEmpty {
            secrets.form = form
            form = []
        }
        if !groups.isEmpty {
            secrets.groups = groups
            groups = []
        }
        change { details in
            swap(&secrets.passedSource, &details.passedSource)
            swap(&secrets.user, &details.user)
            swap(&secrets.password, &details.password)
            swap(&secrets.proxy, &details.proxy)
            swap(&secrets.cookies, &details.cookies)
        }
        return secrets
    }

    /// Returns the URL without its secrets. Text that is not a valid URL becomes `REDACTED`.
    package static func redact(_ url: String) -> String {
        (try? TaskAddress(parsing: url))?.redacted ?? "REDACTED"
    }

    /// Puts the secrets back into the specification, as needed for the transfer.
    public mutating func restore(_ secrets: TaskSecrets) {
        if let full = secrets.url { url = full }
        if isPlain, secrets.isOfURLAlone { return }
        if let full = secrets.mirrors { mirrors = full }
        if let full = secrets.checksumURL { checksumURL = full }
        if let full = secrets.referer { referer = full }
        if let kept = secrets.headers { headers = kept }
        if let kept = secrets.form { form = kept }
        if let kept = secrets.groups { groups = kept }
        if let kept = secrets.passedSource { passedSource = kept }
        user = secrets.user
        password = secrets.password
        proxy = secrets.proxy
        cookies = secrets.cookies
    }
}
