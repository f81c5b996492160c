/// The parts of a specification that a task needs for its transfer but that must not be shown. They are stored
/// separately from the record and deleted when the task completes or is removed.
///
/// The values of ``DetailValues`` that are secret are properties of these names; see ``TaskField/Secrecy``.
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
        set { details = newValue == .default ? nil : Details(newValue) }
    }

    fileprivate var unpacked: UnpackedTask {
        get {
            var unpacked = UnpackedTask(TaskSpecification(url: url ?? ""))
            unpacked.details = values
            return unpacked
        }
        set { values = newValue.details }
    }

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

extension TaskSecrets: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        self.init()
        var values = unpacked
        for key in container.allKeys {
            guard let field = TaskField.named(key.stringValue), field.secrecy != .none else { continue }
            try field.operations.decode(container, key, &values)
        }
        url = try container.decodeIfPresent(String.self, forKey: AnyKey(stringValue: "url"))
        unpacked = values
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        try container.encodeIfPresent(url, forKey: AnyKey(stringValue: "url"))
        if isOfURLAlone { return }
        var values = unpacked
        for field in TaskField.ofSecrets where field.operations.isSet(&values) {
            try field.operations.encode(&values, &container, field.jsonKey)
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
        if isPlain { return secrets }
        var full = UnpackedTask(self)
        var (shown, hidden) = (full, UnpackedTask(TaskSpecification(url: "")))
        for field in TaskField.ofSecrets where field.operations.isSet(&full) {
            if field.secrecy == .value {
                field.operations.reset(&shown)
            } else {
                field.operations.redact(&shown)
                guard field.operations.differs(&full, &shown) else { continue }
            }
            field.operations.copy(&full, &hidden)
        }
        self = shown.packed
        secrets.unpacked = hidden
        return secrets
    }

    /// Returns the URL without its secrets. Text that is not a valid URL becomes `REDACTED`.
    package static func redact(_ url: String) -> String {
        (try? TaskAddress(parsing: url))?.redacted ?? "REDACTED"
    }

    /// Puts the secrets back into the specification, as needed for the transfer.
    public mutating func restore(_ secrets: TaskSecrets) {
        if let full = secrets.url { url = full }
        if secrets.isOfURLAlone { return }
        var hidden = secrets.unpacked
        var values = UnpackedTask(self)
        for field in TaskField.ofSecrets where field.operations.isSet(&hidden) {
            field.operations.copy(&hidden, &values)
        }
        self = values.packed
    }
}
