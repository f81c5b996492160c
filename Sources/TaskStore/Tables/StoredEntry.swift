import GRDB
import TaskModel

/// A task's specification in the form of the columns shared by `task` and `staged_entry`.
struct StoredEntry: Equatable {
    var kind: String
    var url: String
    /// The fingerprint that distinguishes URLs that differ only in their secrets.
    var urlFingerprint: Int64?
    var output: String?
    var directory: String?
    var priority: Int
    var key: String?
    /// The remaining fields as JSON; `nil` if they all have their default values.
    var specification: String?
    /// The value of ``Fingerprint/ofHost(_:)``.
    var hostFingerprint: Int64
    /// The value of ``Fingerprint/ofEntry(kind:url:urlFingerprint:output:)`` for an entry that belongs to a
    /// batch and has no key.
    var entryFingerprint: Int64?
    /// The batch; for a task it is stored in the group.
    var batch: String?

    /// The columns, in the order of ``arguments``.
    static let columns =
        "kind, url, url_fingerprint, output, directory, priority, key, specification, host_fingerprint, "
        + "entry_fingerprint"
    /// The columns and the batch, in the order of ``init(_:at:)``.
    static let columnsWithBatch = columns + ", batch"
    static let columnCount = 11
    /// The assignments of the columns in an UPDATE statement.
    static let assignments = columns.split(separator: ", ").map { "\($0) = ?" }.joined(separator: ", ")

    /// Creates the columns of a new task.
    ///
    /// - Parameter identity: the store's identity, which serves as a salt for the fingerprint.
    init(_ task: borrowing NewTask, identity: String) throws(StoreError) {
        var rests = Rests()
        try self.init(task, identity: identity, rests: &rests)
    }

    /// Creates the columns of a new task.
    ///
    /// - Parameter rests: the cache of encoded fields, shared with previous tasks.
    init(_ task: borrowing NewTask, identity: String, rests: inout Rests) throws(StoreError) {
        let asked = task.specification
        kind = asked.kind.rawValue
        url = asked.url
        urlFingerprint = task.secrets.url.map { Fingerprint.ofSecretURL($0, identity: identity) }
        output = asked.output
        directory = asked.directory
        priority = asked.priority.rank
        batch = asked.batch
        key = asked.key
        // Most tasks have no other fields, and their rows are then read without decoding JSON.
        specification = try rests.text(of: asked)
        hostFingerprint = Fingerprint.ofHost(task.host)
        if let batch { setBatch(batch) }
    }

    mutating func setBatch(_ batch: String) {
        self.batch = batch
        entryFingerprint =
            key == nil ? Fingerprint.ofEntry(kind: kind, url: url, urlFingerprint: urlFingerprint, output: output) : nil
    }

    /// Keeps the start time of the known entry if both entries give the same text relative to the current time, so that
    /// applying a file again does not postpone the start.
    mutating func keepStart(of known: StoredEntry) throws(StoreError) {
        guard let known = known.specification, let specification, specification != known,
            specification.hasBytes(of: "\"startAtText\"")
        else { return }
        let before = try StoredJSON.decode(TaskSpecification.self, from: known)
        var asked = try StoredJSON.decode(TaskSpecification.self, from: specification)
        guard asked.startAtText != nil, asked.startAtText == before.startAtText else { return }
        asked.startAt = before.startAt
        self.specification = try StoredJSON.encode(asked)
    }

    /// Whether the entry asks to fetch its file again if it changed.
    func isUpdate() throws(StoreError) -> Bool {
        guard let specification, specification.hasBytes(of: "\"update\"") else { return false }
        return try decoded().update
    }

    /// An encoder of the fields that have neither a column nor, like the digests of pieces, a table of their own.
    struct Rests {
        /// The last encoded value; consecutive tasks mostly have the same fields.
        private var last: (rest: TaskSpecification, text: String)?

        mutating func text(of asked: TaskSpecification) throws(StoreError) -> String? {
            if asked.isPlain { return nil }
            if let last, last.rest.hasRareValues(of: asked) { return last.text }
            var rest = asked
            rest.kind = .download
            rest.url = ""
            rest.output = nil
            rest.directory = nil
            rest.priority = .normal
            rest.batch = nil
            rest.key = nil
            if rest.pieceHashes != nil { rest.pieceHashes = nil }
            if rest.isPlain { return nil }
            let text = try StoredJSON.encode(rest)
            last = (rest, text)
            return text
        }
    }

    /// Reads the columns that start at index `first` of `row`.
    init(_ row: RowReader, at first: Int) throws(StoreError) {
        kind = try row.text(first)
        url = try row.text(first + 1)
        urlFingerprint = try row.integerOrNil(first + 2)
        output = try row.textOrNil(first + 3)
        directory = try row.textOrNil(first + 4)
        priority = try row.int(first + 5)
        key = try row.textOrNil(first + 6)
        specification = try row.textOrNil(first + 7)
        hostFingerprint = try row.integer(first + 8)
        entryFingerprint = try row.integerOrNil(first + 9)
        batch = try row.textOrNil(first + 10)
    }

    /// The values of all columns except the batch.
    var arguments: [(any DatabaseValueConvertible)?] {
        [kind, url, urlFingerprint, output, directory, priority, key, specification, hostFingerprint, entryFingerprint]
    }

    /// Returns the complete specification, without the digests of pieces.
    func decoded() throws(StoreError) -> TaskSpecification {
        var whole =
            if let specification {
                try StoredJSON.decode(TaskSpecification.self, from: specification)
            } else {
                TaskSpecification(url: "")
            }
        guard let kind = TaskKind(rawValue: kind),
            let priority = TaskPriority.allCases.first(where: { $0.rank == priority })
        else { throw .corrupt("a task has an unknown kind or priority") }
        whole.kind = kind
        whole.url = url
        whole.output = output
        whole.directory = directory
        whole.priority = priority
        whole.batch = batch
        whole.key = key
        return whole
    }
}

extension RowBinding {
    mutating func bind(_ entry: StoredEntry) {
        bind(entry.kind)
        bind(entry.url)
        bind(entry.urlFingerprint)
        bind(entry.output)
        bind(entry.directory)
        bind(Int64(entry.priority))
        bind(entry.key)
        bind(entry.specification)
        bind(entry.hostFingerprint)
        bind(entry.entryFingerprint)
    }
}
