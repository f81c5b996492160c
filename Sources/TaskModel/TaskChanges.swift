/// The changes of a `task.update` request: the fields of ``TaskSpecification`` that may be changed after the task was
/// added.
///
/// The JSON names and forms are those of the specification. An absent field stays unchanged; `null` resets the field to
/// its default.
public struct TaskChanges: Sendable, Equatable {
    /// The change of one field.
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

    /// The new URL. It cannot be reset, since each task has one.
    public var url: String?
    public var output: Change<String>?
    public var connections: Change<ConnectionCount>?
    public var limit: Change<Int64>?
    /// All header lines of the task. They replace the previous ones.
    public var headers: Change<[String]>?
    public var priority: Change<TaskPriority>?
    public var startAt: Change<Milliseconds>?
    public var directory: Change<String>?
    /// The user name. Resetting it also resets the password.
    public var user: Change<String>?
    public var password: Change<String>?
    /// The expected digest. It also replaces the URL of a digest list. Resetting it removes both.
    public var checksum: Change<String>?
    /// All mirrors of the task. They replace the previous ones.
    public var mirrors: Change<[String]>?

    public init() {}

    public var isEmpty: Bool { self == TaskChanges() }

    /// Whether the changes can alter the file's name.
    public var isOfName: Bool { url != nil || output != nil }

    /// Whether the changes can alter the file's path: its directory or its name.
    public var isOfPath: Bool { isOfName || directory != nil }

    /// The first field whose value is valid for a single task only. Resetting a field is valid for any number of tasks.
    public var fieldOfOneTask: String? {
        let fields = [
            ("url", url != nil), ("output", output?.value != nil), ("checksum", checksum?.value != nil),
            ("mirrors", mirrors?.value?.isEmpty == false),
        ]
        return fields.first { $0.1 }?.0
    }

    /// Whether the changes alter the source of the file: its URL, its expected digest or its mirrors.
    var isOfSource: Bool { url != nil || checksum != nil || mirrors?.value?.isEmpty == false }

    /// Whether the changes alter what the server receives about the client: headers, user name or password.
    var isOfAccess: Bool { headers != nil || user != nil || password != nil }

    /// Whether a running transfer continues while the changes are made. It is either unaffected by them or applies them
    /// while it runs.
    public var areTakenUpAtOnce: Bool {
        var rest = self
        rest.priority = nil
        rest.limit = nil
        return rest.isEmpty
    }

    /// Returns the specification with the changes applied. ``TaskSpecification/check()`` validates the result.
    ///
    /// - Parameter specification: the specification, including its secrets.
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
        if let directory { changed.directory = directory.value }
        if let user {
            changed.user = user.value
            if user.value == nil { changed.password = nil }
        }
        if let password { changed.password = password.value }
        if let checksum {
            changed.checksum = checksum.value
            changed.checksumURL = nil
        }
        if let mirrors { changed.mirrors = mirrors.value ?? [] }
        return changed
    }
}
