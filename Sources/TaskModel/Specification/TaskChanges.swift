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

    /// A task with the new values.
    private var task = TaskSpecification(url: "")
    /// The fields that get a value of ``values`` or are reset.
    private(set) var fields = TaskFieldSet()
    /// The fields that are reset.
    private(set) var resetFields = TaskFieldSet()

    public init() {}

    public var isEmpty: Bool { fields.isEmpty }

    private var values: UnpackedTask {
        get { UnpackedTask(task) }
        set { task = newValue.packed }
    }

    // MARK: - Single changes

    /// The new URL. It cannot be reset, since each task has one.
    public var url: String? {
        get { get("url", \.task.url)?.value }
        set { set("url", \.task.url, newValue.map { .set($0) }) }
    }
    public var output: Change<String>? {
        get { get("output", \.task.output) }
        set { set("output", \.task.output, newValue) }
    }
    public var connections: Change<ConnectionCount>? {
        get { get("connections", \.details.connections) }
        set { set("connections", \.details.connections, newValue) }
    }
    public var limit: Change<Int64>? {
        get { get("limit", \.details.limit) }
        set { set("limit", \.details.limit, newValue) }
    }
    /// All header lines of the task. They replace the previous ones.
    public var headers: Change<[String]>? {
        get { get("headers", \.details.headers) }
        set { set("headers", \.details.headers, newValue) }
    }
    public var priority: Change<TaskPriority>? {
        get { get("priority", \.task.priority) }
        set { set("priority", \.task.priority, newValue) }
    }
    public var startAt: Change<Milliseconds>? {
        get { get("startAt", \.details.startAt) }
        set { set("startAt", \.details.startAt, newValue) }
    }
    public var directory: Change<String>? {
        get { get("directory", \.task.directory) }
        set { set("directory", \.task.directory, newValue) }
    }
    /// The user name. Resetting it also resets the password.
    public var user: Change<String>? {
        get { get("user", \.details.user) }
        set { set("user", \.details.user, newValue) }
    }
    public var password: Change<String>? {
        get { get("password", \.details.password) }
        set { set("password", \.details.password, newValue) }
    }
    /// The expected digest. It also replaces the URL of a digest list. Resetting it removes both.
    public var checksum: Change<String>? {
        get { get("checksum", \.details.checksum) }
        set { set("checksum", \.details.checksum, newValue) }
    }
    /// All mirrors of the task. They replace the previous ones.
    public var mirrors: Change<[String]>? {
        get { get("mirrors", \.details.mirrors) }
        set { set("mirrors", \.details.mirrors, newValue) }
    }

    /// The proxy of the task. Resetting it returns to the proxy of the configuration.
    public var proxy: Change<String>? {
        get { get("proxy", \.details.proxy) }
        set { set("proxy", \.details.proxy, newValue) }
    }

    /// The batch of the task. Resetting it takes the task out of its batch.
    public var batch: Change<String>? {
        get { get("batch", \.task.batch) }
        set { set("batch", \.task.batch, newValue) }
    }
    /// The task to wait for.
    public var afterTask: Change<TaskID>? {
        get { get("afterTask", \.details.afterTask) }
        set { set("afterTask", \.details.afterTask, newValue) }
    }
    /// Whether the certificates of servers are not verified.
    public var insecure: Change<Bool>? {
        get { get("insecure", \.details.insecure) }
        set { set("insecure", \.details.insecure, newValue) }
    }

    private func get<Value>(_ name: String, _ path: FieldPath<Value>) -> Change<Value>? {
        guard let field = TaskField.named(name), fields.contains(field) else { return nil }
        return resetFields.contains(field) ? .takeBack : .set(values[keyPath: path])
    }

    private func get<Value>(_ name: String, _ path: FieldPath<Value?>) -> Change<Value>? {
        guard let field = TaskField.named(name), fields.contains(field) else { return nil }
        return values[keyPath: path].map { .set($0) } ?? .takeBack
    }

    private mutating func set<Value>(_ name: String, _ path: FieldPath<Value>, _ change: Change<Value>?) {
        guard let field = TaskField.named(name) else { return }
        note(field, isChanged: change != nil, isReset: change?.value == nil)
        if let value = change?.value { values[keyPath: path] = value }
    }

    private mutating func set<Value>(_ name: String, _ path: FieldPath<Value?>, _ change: Change<Value>?) {
        guard let field = TaskField.named(name) else { return }
        note(field, isChanged: change != nil, isReset: change?.value == nil)
        values[keyPath: path] = change?.value
    }

    /// Stores whether a field is changed, with its default as the value.
    private mutating func note(_ field: TaskField, isChanged: Bool, isReset: Bool) {
        field.operations.reset(&values)
        fields.remove(field)
        resetFields.remove(field)
        if isChanged { fields.insert(field) }
        if isChanged, isReset { resetFields.insert(field) }
    }

    /// Changes a field to the value in `values`.
    package mutating func set(_ field: TaskField, to values: inout UnpackedTask) {
        note(field, isChanged: true, isReset: false)
        var own = self.values
        values.withMemory { field.operations.copy($0, &own) }
        self.values = own
    }

    /// Resets a field to its default.
    package mutating func takeBack(_ field: TaskField) {
        note(field, isChanged: true, isReset: true)
    }

    // MARK: - What changes

    /// Whether the changes can alter the file's name.
    public var isOfName: Bool { url != nil || output != nil }

    /// Whether the changes can alter the file's path: its directory or its name.
    public var isOfPath: Bool { isOfName || directory != nil }

    /// The first field whose value is valid for a single task only. Resetting a field is valid for any number of tasks.
    public var fieldOfOneTask: String? {
        let set = task.setFields
        return TaskField.changeable.first { field in
            field.key?.isOfOneEntry == true && fields.contains(field) && set.contains(field)
        }?.name
    }

    /// Whether the changes alter the source of the file: its URL, its expected digest, its mirrors or the trust in it.
    var isOfSource: Bool {
        url != nil || isOfDigest || mirrors?.value?.isEmpty == false || insecure?.value == true
    }

    /// Whether the changes alter the expected digest or the URL of a list with it.
    public var isOfDigest: Bool { changesAny(of: ["checksum", "checksumURL"]) }

    /// Whether the changes alter what the server receives about the client, how it is trusted, or the way to it.
    var isOfAccess: Bool {
        changesAny(of: [
            "headers", "user", "password", "cookies", "netrc", "userAgent", "referer", "proxy", "caCertificates",
        ])
    }

    private func changesAny(of names: [String]) -> Bool {
        names.contains { name in TaskField.named(name).map { fields.contains($0) } ?? false }
    }

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
        var changed = UnpackedTask(specification)
        if startAt != nil { changed.details.startAtText = nil }
        if user == .takeBack { changed.details.password = nil }
        if checksum != nil { changed.details.checksumURL = nil }
        if changesAny(of: ["checksumURL"]), checksum == nil { changed.details.checksum = nil }
        task.withMemory { values in
            for field in fields { field.operations.copy(values, &changed) }
        }
        return changed.packed
    }
}

extension TaskChanges: Codable {
    /// Decodes the changes from a JSON object.
    ///
    /// - Throws: ``FieldError`` for an unknown or unchangeable field, or for a value of the wrong type.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        var changes = TaskChanges()
        var values = changes.values
        for key in container.allKeys {
            guard let field = TaskField.named(key.stringValue), field.change != nil else {
                throw Self.unknown(key.stringValue)
            }
            let isNull = try container.decodeNil(forKey: key)
            if field.isRequired, isNull { throw FieldError(field: field.name, message: "must be a string") }
            try field.decode(container, into: &values, suffix: field.isRequired ? "" : ", or null")
            if isNull { changes.takeBack(field) } else { changes.set(field, to: &values) }
        }
        self = changes
    }

    private static func unknown(_ name: String) -> FieldError {
        let changeable = TaskField.changeable.map(\.name)
        if TaskField.ofJSON(named: name) != nil {
            return FieldError(
                field: name,
                message: "cannot be changed after the task is added; only \(changeable.joined(separator: ", ")) can")
        }
        let nearest = NearestWord.to(name, among: changeable)
        return FieldError(
            field: name,
            message: "is not a field that can be changed" + (nearest.map { "; did you mean \($0)?" } ?? ""))
    }

    /// Encodes only the fields that change.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        try task.withMemory { values in
            for field in fields {
                if resetFields.contains(field) {
                    try container.encodeNil(forKey: field.jsonKey)
                } else {
                    try field.operations.encode(values, &container, field.jsonKey)
                }
            }
        }
    }
}
