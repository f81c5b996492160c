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
    public var directory: Change<String>?
    /// Taken back, it takes the password with it.
    public var user: Change<String>?
    public var password: Change<String>?
    /// Replaces a list of digests too. Where it is taken back, neither is asked for.
    public var checksum: Change<String>?
    /// All mirrors of the task: those that it had are gone.
    public var mirrors: Change<[String]>?

    public init() {}

    public var isEmpty: Bool { self == TaskChanges() }

    /// The name of the file comes out otherwise.
    public var isOfName: Bool { url != nil || output != nil }

    /// The file comes to lie elsewhere, or under another name.
    public var isOfPath: Bool { isOfName || directory != nil }

    /// The first field whose value one task alone can have. To take a value back suits any number of tasks.
    public var fieldOfOneTask: String? {
        let fields = [
            ("url", url != nil), ("output", output?.value != nil), ("checksum", checksum?.value != nil),
            ("mirrors", mirrors?.value?.isEmpty == false),
        ]
        return fields.first { $0.1 }?.0
    }

    /// The file is asked for somewhere else than before, or as another one.
    var isOfSource: Bool { url != nil || checksum != nil || mirrors?.value?.isEmpty == false }

    /// The server is told otherwise who asks.
    var isOfAccess: Bool { headers != nil || user != nil || password != nil }

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
