/// What a task needs to be carried out and nobody needs to see: kept apart from the record, and erased with
/// the task's success or removal.
public struct TaskSecrets: Codable, Sendable, Equatable {
    /// The URL in full, where the shown one had to leave something out.
    public var url: String?
    public var headers: [String]?
    public var user: String?
    public var password: String?
    public var proxy: String?

    public var isEmpty: Bool { self == TaskSecrets() }

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
        if !headers.isEmpty {
            secrets.headers = headers
            headers = []
        }
        swap(&secrets.user, &user)
        swap(&secrets.password, &password)
        swap(&secrets.proxy, &proxy)
        return secrets
    }

    /// Puts the secrets back, for carrying the task out.
    public mutating func restore(_ secrets: TaskSecrets) {
        if let full = secrets.url { url = full }
        if let kept = secrets.headers { headers = kept }
        user = secrets.user
        password = secrets.password
        proxy = secrets.proxy
    }
}
