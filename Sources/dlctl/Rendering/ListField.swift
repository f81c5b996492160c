import TaskModel

/// A field of a task's JSON, which can be a column of a list and the key by which the list is sorted.
enum ListField: String, CaseIterable {
    case id, kind, state, reason, phase, url, path, name, owner, batch, key, priority
    case bytesDone, bytesTotal, bytesFetched, rate, eta, idleSince, reconnectsAt, connections, attempts
    case notBefore, createdAt, startedAt, finishedAt, error, checksum, checksumURL, verified, afterTask
    case fileState

    /// Returns the field with this name; letter case is ignored.
    init?(name: String) {
        let name = name.lowercased()
        guard let field = Self.allCases.first(where: { $0.rawValue.lowercased() == name }) else { return nil }
        self = field
    }

    /// Returns the fields named in `text`, separated by commas.
    static func list(_ text: String, option: String) throws(Failure) -> [ListField] {
        var fields: [ListField] = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            fields.append(try named(String(word), option: option))
        }
        return fields
    }

    static func named(_ word: String, option: String) throws(Failure) -> ListField {
        if let field = ListField(name: word) { return field }
        let known = allCases.map(\.rawValue)
        let nearest = NearestWord.to(word, among: known).map { "; did you mean \($0)?" } ?? ""
        throw .usage(
            "\(option): \"\(word)\" is not a field of a task\(nearest); the fields are \(known.joined(separator: ", "))",
            field: option)
    }

    // MARK: Columns

    private var isNumber: Bool {
        switch self {
        case .id, .bytesDone, .bytesTotal, .bytesFetched, .rate, .eta, .connections, .attempts, .afterTask,
            .notBefore, .createdAt, .startedAt, .finishedAt, .idleSince, .reconnectsAt:
            true
        default: false
        }
    }

    /// Returns the column of this field.
    ///
    /// - Parameter omission: see ``Table/Column/omission``.
    func column(omission: Int?) -> Table.Column {
        let title = rawValue.uppercased()
        let least: Int? =
            switch self {
            case .url, .path, .name, .batch, .key, .error, .checksum, .checksumURL: 12
            case .owner: 8
            default: nil
            }
        return Table.Column(
            title: title, alignsRight: isNumber, minimum: least.map { max($0, title.count) },
            isCutInMiddle: self != .error && self != .owner, omission: omission)
    }

    /// Returns the value for people to read; `-` if it is unknown.
    func cell(_ task: TaskStatus) -> String {
        let text: String? =
            switch self {
            case .id: task.id.description
            case .kind: task.kind.rawValue
            case .state: task.state.rawValue
            case .reason: task.reason?.rawValue
            case .phase: task.phase?.rawValue
            case .url: task.url
            case .path: task.path
            case .name: task.name
            case .owner: Accounts.name(task.owner)
            case .batch: task.batch
            case .key: task.key
            case .priority: task.priority.rawValue
            case .bytesDone: ByteSize.describe(task.bytesDone)
            case .bytesTotal: task.bytesTotal.map { ByteSize.describe($0) }
            case .bytesFetched: ByteSize.describe(task.bytesFetched)
            case .rate: task.rate.map { Describe.rate($0) }
            case .eta: task.eta.map { Describe.clock(seconds: $0) }
            case .idleSince: task.idleSince.map(Clock.local)
            case .reconnectsAt: task.reconnectsAt.map(Clock.local)
            case .connections: "\(task.connections)"
            case .attempts: "\(task.attempts)"
            case .notBefore: task.notBefore.map(Clock.local)
            case .createdAt: Clock.local(task.createdAt)
            case .startedAt: task.startedAt.map(Clock.local)
            case .finishedAt: task.finishedAt.map(Clock.local)
            case .error: task.error.map { "\($0.code): \($0.message)" }
            case .checksum: task.checksum
            case .checksumURL: task.checksumURL
            case .verified: task.verified ? "yes" : "no"
            case .afterTask: task.afterTask?.description
            case .fileState: task.fileState?.rawValue
            }
        return text.map(Escape.visible) ?? "-"
    }

    // MARK: Sorting

    /// A value that can be compared with others of the same field.
    enum Key: Comparable {
        case number(Int64)
        case text(String)
    }

    /// Returns the value to sort by; `nil` if it is unknown.
    func key(_ task: TaskStatus) -> Key? {
        func number(_ value: (some BinaryInteger)?) -> Key? { value.map { .number(Int64(clamping: $0)) } }
        func text(_ value: String?) -> Key? { value.map { .text($0) } }
        return switch self {
        case .id: number(task.id.rawValue)
        case .kind: text(task.kind.rawValue)
        case .state: number(TaskState.allCases.firstIndex(of: task.state))
        case .reason: text(task.reason?.rawValue)
        case .phase: text(task.phase?.rawValue)
        case .url: text(task.url)
        case .path: text(task.path)
        case .name: text(task.name)
        case .owner: number(task.owner)
        case .batch: text(task.batch)
        case .key: text(task.key)
        case .priority: number(TaskPriority.allCases.firstIndex(of: task.priority))
        case .bytesDone: number(task.bytesDone)
        case .bytesTotal: number(task.bytesTotal)
        case .bytesFetched: number(task.bytesFetched)
        case .rate: number(task.rate)
        case .eta: number(task.eta)
        case .idleSince: number(task.idleSince)
        case .reconnectsAt: number(task.reconnectsAt)
        case .connections: number(task.connections)
        case .attempts: number(task.attempts)
        case .notBefore: number(task.notBefore)
        case .createdAt: number(task.createdAt)
        case .startedAt: number(task.startedAt)
        case .finishedAt: number(task.finishedAt)
        case .error: text(task.error?.code.rawValue)
        case .checksum: text(task.checksum)
        case .checksumURL: text(task.checksumURL)
        case .verified: number(task.verified ? 1 : 0)
        case .afterTask: number(task.afterTask?.rawValue)
        case .fileState: text(task.fileState?.rawValue)
        }
    }
}
