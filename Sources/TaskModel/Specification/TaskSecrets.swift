/// The parts of a specification that a task needs for its transfer but that must not be shown. They are stored
/// separately from the record and deleted when the task completes or is removed.
///
/// The values of ``DetailValues`` that are secret are properties of these names; see `TaskField/Secrecy`.
@dynamicMemberLookup
public struct TaskSecrets: Sendable, Equatable {
    /// The full URL, where the redacted one differs.
    public var url: String?
    /// The secret values: of a value with URLs the full one, where the redacted one differs.
    private var details: Details?

    public var isEmpty: Bool { url == nil && isOfURLAlone }

    var isOfURLAlone: Bool { details == nil }

    public init() {}

    private var values: DetailValues {
        get { details?.values ?? .default }
        set { details = Details.holding(newValue, sharing: details) }
    }

    /// A task with the secret values.
    fileprivate var task: TaskSpecification {
        get {
            var task = TaskSpecification(url: url ?? "")
            task.details = details
            return task
        }
        set { details = newValue.details }
    }

    /// The fields of the secret values.
    fileprivate var fields: TaskFieldSet { details?.fields.intersection(.ofSecrets) ?? TaskFieldSet() }

    /// A secret text; `nil` for none.
    public subscript(dynamicMember path: WritableKeyPath<DetailValues, String?>) -> String? {
        get { values[keyPath: path] }
        set { values[keyPath: path] = newValue }
    }

    /// A list of secret values; `nil` for none.
    public subscript<Element>(dynamicMember path: WritableKeyPath<DetailValues, [Element]>) -> [Element]? {
        get {
            let list = values[keyPath: path]
            return list.isEmpty ? nil : list
        }
        set { values[keyPath: path] = newValue ?? [] }
    }
}

extension TaskSecrets {
    /// Returns the fields whose secrets have another value in `other`, by their names for people.
    package func differences(to other: TaskSecrets) -> [String] {
        let (own, others) = (task, other.task)
        return own.withMemory { values in
            others.withMemory { others in
                TaskField.all.filter { $0.secrecy != .none && $0.operations.differs(values, others) }.map(\.word)
            }
        } + (url == other.url ? [] : ["url"])
    }
}

extension TaskSecrets: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        self.init()
        var values = UnpackedTask(task)
        for key in container.allKeys {
            guard let field = TaskField.named(key.stringValue), field.secrecy != .none else { continue }
            try field.operations.decode(container, key, &values)
        }
        url = try container.decodeIfPresent(String.self, forKey: AnyKey(stringValue: "url"))
        task = values.packed
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        try container.encodeIfPresent(url, forKey: AnyKey(stringValue: "url"))
        if isOfURLAlone { return }
        try task.withMemory { values in
            for field in fields { try field.operations.encode(values, &container, field.jsonKey) }
        }
    }
}

extension TaskSpecification {
    /// Moves the secrets out of the specification, which can then be shown, logged and stored.
    public mutating func takeSecrets(redactedURL: String) -> TaskSecrets {
        var secrets = TaskSecrets()
        if redactedURL != url {
            secrets.url = url
            url = redactedURL
        }
        let fields = secretFields
        if fields.isEmpty { return secrets }
        var (shown, hidden) = (UnpackedTask(self), UnpackedTask(TaskSpecification(url: "")))
        withMemory { full in
            for field in fields {
                field.operations.copy(full, &hidden)
                if field.secrecy == .value { field.operations.reset(&shown) } else { field.operations.redact(&shown) }
            }
        }
        self = shown.packed
        secrets.task = hidden.packed
        return secrets
    }

    /// The rarely used fields whose values are or contain secrets.
    private var secretFields: TaskFieldSet {
        var secret = TaskFieldSet()
        guard let fields = details?.fields.intersection(.ofSecrets), !fields.isEmpty else { return secret }
        withMemory { values in
            for field in fields where field.secrecy == .value || field.operations.hasSecrets(values) {
                secret.insert(field)
            }
        }
        return secret
    }

    /// Returns the URL without its secrets. Text that is not a valid URL becomes `REDACTED`.
    package static func redact(_ url: String) -> String {
        (try? TaskAddress(parsing: url))?.redacted ?? "REDACTED"
    }

    /// Puts the secrets back into the specification, as needed for the transfer.
    public mutating func restore(_ secrets: TaskSecrets) {
        if let full = secrets.url { url = full }
        if secrets.isOfURLAlone { return }
        var values = UnpackedTask(self)
        secrets.task.withMemory { hidden in
            for field in secrets.fields { field.operations.copy(hidden, &values) }
        }
        self = values.packed
    }
}
