import GRDB
import GRDBSQLite
import TaskModel

/// A limit on the rows and bytes of one commit, so that other callers do not wait long for it and it fits on an almost
/// full disk.
struct CommitLimit: Sendable, Equatable {
    /// The approximate number of log bytes: a commit ends with the row that exceeds it.
    static let bytesInCommit: Int64 = 4 << 20
    /// The number of rows from which the limit is halved once the disk is full.
    private static let rowsAfterFull = 64

    private(set) var rows = TaskStore.rowsInCommit
    let bytes = Self.bytesInCommit

    /// Halves the limit, the first time to half of ``rowsAfterFull``.
    ///
    /// - Returns: `false` if the limit cannot be reduced further.
    mutating func halve() -> Bool {
        guard rows > 1 else { return false }
        rows = min(rows, Self.rowsAfterFull) / 2
        return true
    }

    /// Doubles the limit, up to the usual maximum.
    mutating func grow() { rows = min(rows * 2, TaskStore.rowsInCommit) }
}

/// The remaining part of a commit's limit.
struct CommitBudget {
    private let limit: CommitLimit
    private let before: UInt32?
    private var rows = 0
    private var bytes: Int64 = 0

    init(_ limit: CommitLimit = CommitLimit(), in database: Database) {
        self.limit = limit
        before = database.pagesWritten
    }

    /// Records work done.
    ///
    /// - Parameter bytes: the bytes processed in addition to those written to the log.
    mutating func spend(rows: Int = 1, bytes: Int64 = 0) {
        self.rows = self.rows.addingClamped(rows)
        self.bytes = self.bytes.addingClamped(bytes)
    }

    var rowsLeft: Int { max(0, limit.rows - rows) }

    func isSpent(in database: Database) -> Bool {
        guard rows < limit.rows, let before, let now = database.pagesWritten else { return true }
        let written = Int64(now &- before).multipliedClamped(by: Database.pageSize)
        return bytes.addingClamped(written) >= limit.bytes
    }
}

extension Database {
    /// The page size in bytes; this is SQLite's default.
    static let pageSize: Int64 = 4_096

    /// The number of pages that this connection has written so far, modulo 2³². Within a transaction the number grows
    /// once the changes fill the cache of 2 MB. `nil` if SQLite does not report it.
    fileprivate var pagesWritten: UInt32? {
        var (current, highest): (Int32, Int32) = (0, 0)
        guard let sqliteConnection,
            sqlite3_db_status(sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &current, &highest, 0) == SQLITE_OK
        else { return nil }
        return UInt32(bitPattern: current)
    }

    /// Runs a statement repeatedly, with twice as many rows each time up to ``largestStep``, until the
    /// budget is spent or no rows are left.
    ///
    /// - Parameter body: runs the statement for at most the given number of rows and returns the number of rows
    ///   processed.
    /// - Returns: the total number of rows, and whether no rows are left.
    func inSteps(within limit: CommitLimit, _ body: (_ rows: Int) throws -> Int) throws -> (rows: Int, isAll: Bool) {
        var budget = CommitBudget(limit, in: self)
        var (total, step) = (0, 2)
        repeat {
            let asked = min(step, budget.rowsLeft)
            let count = try body(asked)
            total += count
            if count < asked { return (total, true) }
            budget.spend(rows: count)
            step = min(step * 2, Self.largestStep)
        } while !budget.isSpent(in: self)
        return (total, false)
    }

    private static let largestStep = 512
}

extension TaskStore {
    /// Performs `step` for each of `items`, in as many commits as needed. If a commit fails, the previous ones remain
    /// in effect.
    ///
    /// - Parameters:
    ///   - finish: performed at the end of each commit.
    ///   - step: returns the number of bytes processed in addition to those written.
    func inParts<Item: Sendable, Outcome: Sendable>(
        _ items: [Item], _ outcome: Outcome,
        finish: @escaping @Sendable (Database, inout Outcome) throws -> Void = { _, _ in },
        _ step: @escaping @Sendable (Database, Item, inout Outcome) throws -> Int64
    ) async throws(StoreError) -> Outcome {
        var (outcome, rest) = (outcome, items[...])
        var limit = CommitLimit()
        while !rest.isEmpty {
            let (part, before) = (rest.prefix(limit.rows), outcome)
            let after = try await withinRoom(&limit) { limit, database in
                var (outcome, done) = (before, 0)
                var budget = CommitBudget(limit, in: database)
                repeat {
                    budget.spend(bytes: try step(database, part[part.startIndex + done], &outcome))
                    done += 1
                } while done < part.count && !budget.isSpent(in: database)
                try finish(database, &outcome)
                return (outcome, done)
            }
            outcome = after.0
            rest = rest.dropFirst(after.1)
        }
        return outcome
    }

    /// Runs a statement for as many rows as fit into one commit.
    ///
    /// - Returns: the number of rows, and whether no rows are left.
    func inSteps(
        _ body: @escaping @Sendable (_ database: Database, _ rows: Int) throws -> Int
    ) async throws(StoreError) -> (rows: Int, isAll: Bool) {
        try await inCommit { limit, database in
            try database.inSteps(within: limit) { try body(database, $0) }
        }
    }

    /// Performs `body` in one commit; `body` must observe the given limit.
    func inCommit<Value: Sendable>(
        _ body: @escaping @Sendable (CommitLimit, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        var limit = CommitLimit()
        return try await withinRoom(&limit, body)
    }

    /// Performs `body` in one commit. If the disk is full, the log is shortened and `body` is retried with half the
    /// limit.
    private func withinRoom<Value: Sendable>(
        _ limit: inout CommitLimit, _ body: @escaping @Sendable (CommitLimit, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        while true {
            let current = limit
            do throws(StoreError) {
                let value = try await writes.perform(weight: current.rows) { try body(current, $0) }
                limit.grow()
                return value
            } catch {
                guard error == .full, limit.halve() else { throw error }
                _ = try await shortenLog()
            }
        }
    }
}
