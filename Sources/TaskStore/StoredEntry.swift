import GRDB
import TaskModel

/// What a person asked for, in the form of the columns that `task` and `staged_entry` share.
struct StoredEntry: Equatable {
    var kind: String
    var url: String
    /// Tells apart URLs that look the same without their secrets.
    var urlMark: Int64?
    var output: String?
    var directory: String?
    var priority: Int
    var batch: String?
    var key: String?
    /// The rest as JSON; `nil` where everything else is as it is by default.
    var specification: String?
    var host: String

    /// The columns, in the order of ``arguments`` and ``init(_:at:)``.
    static let columns = "kind, url, url_mark, output, directory, priority, batch, key, specification, host"
    static let columnCount = 10

    /// - Parameter identity: the store's, which salts the mark.
    init(_ task: NewTask, identity: String) throws(StoreError) {
        var rest = task.specification
        kind = rest.kind.rawValue
        url = rest.url
        urlMark = task.secrets.url.map { Self.mark(of: $0, identity: identity) }
        output = rest.output
        directory = rest.directory
        priority = rest.priority.rank
        batch = rest.batch
        key = rest.key
        rest.kind = .download
        rest.url = ""
        rest.output = nil
        rest.directory = nil
        rest.priority = .normal
        rest.batch = nil
        rest.key = nil
        // In a table of their own.
        rest.pieceHashes = nil
        // Most tasks ask for nothing else, and their rows are then read without decoding any JSON.
        specification = rest == TaskSpecification(url: "") ? nil : try StoredJSON.encode(rest)
        host = task.host
    }

    /// Reads the columns that begin with the `first` of `row`.
    init(_ row: RowReader, at first: Int) throws(StoreError) {
        kind = try row.text(first)
        url = try row.text(first + 1)
        urlMark = try row.integerOrNil(first + 2)
        output = try row.textOrNil(first + 3)
        directory = try row.textOrNil(first + 4)
        priority = try row.int(first + 5)
        batch = try row.textOrNil(first + 6)
        key = try row.textOrNil(first + 7)
        specification = try row.textOrNil(first + 8)
        host = try row.text(first + 9)
    }

    var arguments: [(any DatabaseValueConvertible)?] {
        [kind, url, urlMark, output, directory, priority, batch, key, specification, host]
    }

    /// The specification put together again, without the digests of pieces.
    func decoded() throws(StoreError) -> TaskSpecification {
        var whole =
            if let specification {
                try StoredJSON.decode(TaskSpecification.self, from: specification)
            } else {
                TaskSpecification(url: "")
            }
        guard let kind = TaskKind(rawValue: kind),
            let priority = TaskPriority.allCases.first(where: { $0.rank == priority })
        else { throw .corrupt("a task has a kind or priority that there is not") }
        whole.kind = kind
        whole.url = url
        whole.output = output
        whole.directory = directory
        whole.priority = priority
        whole.batch = batch
        whole.key = key
        return whole
    }

    /// FNV-1a, folded to 32 bits: enough to tell the entries of one file apart, too little to find a secret by,
    /// since the mark outlives the secret that it was made from.
    private static func mark(of url: String, identity: String) -> Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in identity.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for byte in url.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int64((hash >> 32) ^ (hash & 0xFFFF_FFFF))
    }
}
