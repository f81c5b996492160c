/// What a task needs to be carried out and nobody needs to see: kept apart from the record, and erased with
/// the task's success or removal.
public struct TaskSecrets: Codable, Sendable, Equatable {
    /// The URL in full, where the shown one had to leave something out.
    public var url: String?
    /// All mirrors in full, where one of the shown ones had to leave something out.
    public var mirrors: [String]?
    /// The list's URL in full, where the shown one had to leave something out.
    public var checksumURL: String?
    public var headers: [String]?
    public var user: String?
    public var password: String?
    public var proxy: String?
    /// In full, where the shown one had to leave something out.
    public var referer: String?
    public var cookies: String?
    /// The fields of an upload's form: names too, since one of them tells what the others are.
    public var form: [String]?
    /// The groups of whoever asked: no secret, but of no use to anyone else.
    package var groups: [UInt32]?
    /// The name of the open file that was passed for an upload.
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
    /// Takes the secrets out: afterwards the specification can be shown, logged and kept.
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

    /// What is no URL, and was therefore never accepted, shows nothing.
    package static func redact(_ url: String) -> String {
        (try? TaskAddress(parsing: url))?.redacted ?? "REDACTED"
    }

    /// Puts the secrets back, for carrying the task out.
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
