import FoundationEssentials
import GRDB
import GRDBSQLite
import TaskModel

/// A task on its way into the table.
struct FreshTask {
    var entry: StoredEntry
    var path: String?
    var standing: TaskStanding
    /// JSON.
    var secrets: String?
    var pieceHashes: PieceHashes?
    /// The task that it follows.
    var afterTask: TaskID?

    /// - Parameter identity: the store's.
    init(_ task: borrowing NewTask, identity: String) throws(StoreError) {
        entry = try StoredEntry(task, identity: identity)
        path = task.path
        standing = task.standing
        secrets = try StoredJSON.encode(secrets: task.secrets)
        pieceHashes = task.specification.pieceHashes
        afterTask = task.specification.afterTask
    }

    init(entry: StoredEntry, path: String?, standing: TaskStanding, secrets: String?) throws(StoreError) {
        self.entry = entry
        self.path = path
        self.standing = standing
        self.secrets = secrets
        // Few tasks ask for what has no column.
        if entry.specification != nil { afterTask = try entry.decoded().afterTask }
    }
}

/// Tasks in the form in which they are written.
package struct PreparedTasks: Sendable {
    var tasks: [FreshTask] = []
}

/// Consecutive tasks that stand alike.
struct TaskRange {
    var ids: ClosedRange<Int64>
    var state: TaskState
    var reason: TaskReason?
}

extension Database {
    /// Rows in one statement: what a statement costs by itself is shared by so many.
    private static let rowsInStatement = 32
    private static let insertedColumns =
        "id, position, flow, owner, created_at, path, state, reason, not_before, \(StoredEntry.columns)"
    private static let insertedColumnCount: Int32 = 19
    private static let insertOne = insertStatement(rows: 1)
    private static let insertMany = insertStatement(rows: rowsInStatement)

    private static func insertStatement(rows: Int) -> String {
        let row = "(" + Array(repeating: "?", count: Int(insertedColumnCount)).joined(separator: ", ") + ")"
        return "INSERT INTO task (\(insertedColumns)) VALUES "
            + Array(repeating: row, count: rows).joined(separator: ", ")
    }

    /// Adds tasks whose keys, where they have some, are free; without an event. Their numbers are consecutive.
    ///
    /// - Parameter set: they belong to this set and are hidden.
    /// - Returns: what was added, in order; empty where `tasks` is.
    func insert(
        _ tasks: ArraySlice<FreshTask>, owner: UInt32, set: Int64? = nil, now: Milliseconds
    ) throws -> [TaskRange] {
        guard !tasks.isEmpty else { return [] }
        let first = try newestNumber(in: "task") + 1
        var flows: [String?: Int64] = [:]
        var flow: Int64 = 0
        // Tasks that are not counted yet.
        var tally: (flow: Int64, state: TaskState, count: Int)?
        var ranges: [TaskRange] = []
        let (many, one) = (try cachedStatement(sql: Self.insertMany), try cachedStatement(sql: Self.insertOne))
        let texts = TextBuffer()
        var index = tasks.startIndex
        while index < tasks.endIndex {
            let isFull = tasks.endIndex - index >= Self.rowsInStatement
            var row = RowBinding(statement: isFull ? many : one, texts: texts)
            for offset in 0..<(isFull ? Self.rowsInStatement : 1) {
                let task = index + offset
                let id = first + Int64(task - tasks.startIndex)
                // Neighbours are mostly of one batch.
                if task == tasks.startIndex || tasks[task].entry.batch != tasks[task - 1].entry.batch {
                    let batch = tasks[task].entry.batch
                    flow = try flows[batch] ?? self.flow(owner: owner, batch: batch, set: set)
                    flows[batch] = flow
                }
                let standing = tasks[task].standing
                if let last = ranges.last, last.state == standing.state, last.reason == standing.reason {
                    ranges[ranges.count - 1].ids = last.ids.lowerBound...id
                } else {
                    ranges.append(TaskRange(ids: id...id, state: standing.state, reason: standing.reason))
                }
                if standing.state != tally?.state || flow != tally?.flow {
                    if let tally { try count(tally.count, tally.state, into: tally.flow) }
                    tally = (flow, standing.state, 0)
                }
                tally?.count += 1
                row.bind(id)
                row.bind(Position.ofNew(id))
                row.bind(flow)
                row.bind(Int64(owner))
                row.bind(now)
                row.bind(tasks[task].path)
                row.bind(standing.state.rawValue)
                row.bind(standing.reason?.rawValue)
                row.bind(standing.notBefore)
                row.bind(tasks[task].entry)
            }
            try row.run()
            index += isFull ? Self.rowsInStatement : 1
        }
        if let tally { try count(tally.count, tally.state, into: tally.flow) }
        for (index, task) in tasks.enumerated() {
            let id = TaskID(first + Int64(index))
            if let secrets = task.secrets { try setSecrets(of: id, to: secrets) }
            if let hashes = task.pieceHashes { try setPieceHashes(of: id, to: hashes) }
            if let afterTask = task.afterTask { try setDependency(of: id, after: afterTask) }
        }
        return ranges
    }

    /// Adds tasks, each unless its owner has one with its key, with an event each.
    func add(_ tasks: [NewTask], identity: String, now: Milliseconds) throws -> [AddOutcome] {
        var outcomes: [AddOutcome] = []
        outcomes.reserveCapacity(tasks.count)
        // Those without a key, or of another owner than the one before, are added together.
        var fresh: [FreshTask] = []
        var owner: UInt32 = 0
        func flush() throws {
            for range in try insert(fresh[...], owner: owner, now: now) {
                try journalAdded(range, owner: owner, at: now)
                outcomes += range.ids.map { .added(TaskID($0)) }
            }
            fresh.removeAll(keepingCapacity: true)
        }
        for task in tasks {
            if task.owner != owner || task.specification.key != nil { try flush() }
            owner = task.owner
            if let key = task.specification.key, let id = try taskID(owner: owner, key: key) {
                outcomes.append(.existing(id))
                continue
            }
            fresh.append(try FreshTask(task, identity: identity))
            if task.specification.key != nil { try flush() }
        }
        try flush()
        return outcomes
    }

    func taskID(owner: UInt32, key: String) throws -> TaskID? {
        try firstRow("SELECT id FROM task WHERE owner = ? AND key = ?", [owner, key]) { try $0.id(0) }
    }
}

/// The bytes of the texts that a statement is bound to, side by side: SQLite would copy them one by one.
private final class TextBuffer {
    private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 1)
    private var used = 0

    deinit { bytes.deallocate() }

    func clear() { used = 0 }

    /// - Returns: `nil` where there is no room left.
    func append(_ text: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar>? {
        guard used + text.count <= bytes.count, let place = bytes.baseAddress?.advanced(by: used) else { return nil }
        UnsafeMutableRawBufferPointer(start: place, count: text.count).copyBytes(from: text)
        used += text.count
        return UnsafePointer(place.assumingMemoryBound(to: CChar.self))
    }
}

/// Binds values one after the other, without the arrays that a million rows would pay for one by one.
private struct RowBinding {
    private let handle: OpaquePointer
    private let texts: TextBuffer
    private var index: Int32 = 0

    /// - Parameter texts: of the statement before; it is used anew.
    init(statement: Statement, texts: TextBuffer) {
        handle = statement.sqliteStatement
        self.texts = texts
        texts.clear()
        sqlite3_reset(handle)
    }

    mutating func bind(_ value: Int64?) {
        index += 1
        if let value { sqlite3_bind_int64(handle, index, value) } else { sqlite3_bind_null(handle, index) }
    }

    mutating func bind(_ text: String?) {
        index += 1
        guard var text else {
            sqlite3_bind_null(handle, index)
            return
        }
        text.withUTF8 { bytes in
            if let place = texts.append(bytes) {
                sqlite3_bind_text(handle, index, place, Int32(bytes.count), nil)
                return
            }
            _ = bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_bind_text(handle, index, $0.baseAddress, Int32($0.count), Self.copied)
            }
        }
    }

    mutating func bind(_ entry: StoredEntry) {
        bind(entry.kind)
        bind(entry.url)
        bind(entry.urlMark)
        bind(entry.output)
        bind(entry.directory)
        bind(Int64(entry.priority))
        bind(entry.key)
        bind(entry.specification)
        bind(entry.hostMark)
        bind(entry.entryMark)
    }

    /// SQLite makes its own copy.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    /// Afterwards the statement is bound to nothing.
    func run() throws {
        let result = sqlite3_step(handle)
        defer {
            sqlite3_reset(handle)
            sqlite3_clear_bindings(handle)
        }
        guard result == SQLITE_DONE else {
            let connection = sqlite3_db_handle(handle)
            throw DatabaseError(
                resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
                message: String(cString: sqlite3_errmsg(connection)))
        }
    }
}
