/// What `task.update` changes of a task: the fields of ``TaskSpecification`` that may be changed once it is there.
///
/// In JSON they stand under the same names and have the same forms. Absent, a field stays as it is; `null` takes back
/// what was asked for.
public struct TaskChanges: Sendable, Equatable {
    /// What becomes of one field.
    public enum Change<Value: Sendable & Equatable>: Sendable, Equatable {
        case takeBack
        case set(Value)

        package var value: Value? {
            switch self {
            case .takeBack: nil
            case .set(let value): value
            }
        }
    }

    /// Nothing takes it back: a task has one.
    public var url: String?
    public var output: Change<String>?
    public var connections: Change<ConnectionCount>?
    public var limit: Change<Int64>?
    /// All header lines of the task: those that it had are gone.
    public var headers: Change<[String]>?
    public var priority: Change<TaskPriority>?
    public var startAt: Change<Milliseconds>?

    public init() {}

    public var isEmpty: Bool { self == TaskChanges() }

    /// The name of the file comes out otherwise.
    public var isOfName: Bool { url != nil || output != nil }

    /// What runs goes on while they are made: it does not notice them, or takes them up as it goes.
    public var areTakenUpAtOnce: Bool {
        var rest = self
        rest.priority = nil
        rest.limit = nil
        return rest.isEmpty
    }

    /// What is asked for from now on. Whether that can be is for ``TaskSpecification/check()`` to judge.
    ///
    /// - Parameter specification: with its secrets.
    public func applied(to specification: TaskSpecification) -> TaskSpecification {
        var changed = specification
        if let url { changed.url = url }
        if let output { changed.output = output.value }
        if let connections { changed.connections = connections.value }
        if let limit { changed.limit = limit.value }
        if let headers { changed.headers = headers.value ?? [] }
        if let priority { changed.priority = priority.value ?? .normal }
        if let startAt {
            changed.startAt = startAt.value
            changed.startAtText = nil
        }
        return changed
    }
}

extension TaskStanding {
    /// Where a task stands once a person changed what it asks for; one that runs counts as the ready one that it is
    /// stored as.
    ///
    /// What waits or is stopped on account of its URL goes on by itself with another: what failed, what needs a
    /// person's help with the server, and what waits for the server or the network. For help other header fields will
    /// do as well. An upload whose source changed goes to another URL as it is then. A time to start holds what would start before it. What a person paused stays so.
    ///
    /// - Throws: ``IllegalTransition`` where it is completed or cancelled.
    public func updated(by changes: TaskChanges, now: Milliseconds) throws(IllegalTransition) -> TaskStanding {
        var standing = self
        try standing.apply(.update)
        let isFreed =
            switch (state, reason) {
            case (.failed, _), (.waiting, .retry), (.waiting, .network): changes.url != nil
            case (.paused, .urlExpired), (.paused, .auth): changes.url != nil || changes.headers != nil
            case (.paused, .sourceChanged): changes.url != nil
            case (.waiting, .scheduled): changes.startAt != nil
            default: false
            }
        let waitsForHour = state == .waiting && (reason == .scheduled || reason == .dependency)
        let mayStart = state == .queued || state == .active || (state == .waiting && !waitsForHour)
        guard isFreed || (mayStart && changes.startAt != nil) else { return standing }
        let later = TaskStanding(startAt: changes.startAt?.value, now: now)
        // What waits for something else than an hour goes on waiting for it, where no later hour is named.
        return isFreed || later.state == .waiting ? later : standing
    }
}

extension TaskChanges: Codable {
    package enum Field: String, CodingKey, CaseIterable {
        case url, output, connections, limit, headers, priority, startAt
    }

    /// - Throws: ``FieldError`` for a field that is not known or cannot be changed, or a value of another type.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        func change<Value: Decodable & Equatable & Sendable>(
            _ key: AnyKey, _ expected: String
        ) throws -> Change<Value> {
            do {
                if try container.decodeNil(forKey: key) { return .takeBack }
                return .set(try container.decode(Value.self, forKey: key))
            } catch {
                throw FieldError(field: key.stringValue, message: "must be \(expected), or null")
            }
        }
        self.init()
        for key in container.allKeys {
            switch Field(rawValue: key.stringValue) {
            case .url:
                guard let text = try? container.decode(String.self, forKey: key) else {
                    throw FieldError(field: "url", message: "must be a string")
                }
                url = text
            case .output: output = try change(key, "a string")
            case .connections: connections = try change(key, ConnectionCount.expectation)
            case .limit: limit = try change(key, "a whole number of bytes a second")
            case .headers: headers = try change(key, "an array of strings")
            case .priority:
                priority = try change(
                    key, "one of " + TaskPriority.allCases.map(\.rawValue).joined(separator: ", "))
            case .startAt: startAt = try change(key, "a whole number of milliseconds since 1970")
            case nil: throw Self.unknown(key.stringValue)
            }
        }
    }

    private static func unknown(_ name: String) -> FieldError {
        let changeable = Field.allCases.map(\.rawValue)
        if TaskSpecification.Field(rawValue: name) != nil {
            return FieldError(
                field: name,
                message: "cannot be changed once the task is there; only \(changeable.joined(separator: ", ")) can")
        }
        let nearest = NearestWord.to(name, among: changeable)
        return FieldError(
            field: name,
            message: "is not a field that can be changed" + (nearest.map { "; did you mean \($0)?" } ?? ""))
    }

    /// Writes only what changes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Field.self)
        func encode(_ change: Change<some Encodable>?, _ field: Field) throws {
            switch change {
            case nil: break
            case .takeBack: try container.encodeNil(forKey: field)
            case .set(let value): try container.encode(value, forKey: field)
            }
        }
        try container.encodeIfPresent(url, forKey: .url)
        try encode(output, .output)
        try encode(connections, .connections)
        try encode(limit, .limit)
        try encode(headers, .headers)
        try encode(priority, .priority)
        try encode(startAt, .startAt)
    }
}
