import GRDB
import GRDBSQLite
import TaskModel

/// The limit on what one commit does before it ends, so that nobody waits for it for long, and so that it has room on a disk
/// that is almost full.
struct CommitLimit: Sendable, Equatable {
    /// Bytes of the log, about: a commit ends with the row that goes beyond them.
    static let bytesInCommit: Int64 = 4 << 20
    /// Rows after a disk had no room for more of them.
    private static let rowsAfterFull = 64

    private(set) var rows = TaskStore.rowsInCommit
    let bytes = Self.bytesInCommit

    /// Half as much as before.
    ///
    /// - Returns: `false` where it cannot be less.
    mutating func halve() -> Bool {
        guard rows > 1 else { return false }
        rows = min(rows, Self.rowsAfterFull) / 2
        return true
    }

    /// Twice as much as before, up to what is usual.
    mutating func grow() { rows = min(rows * 2, TaskStore.rowsInCommit) }
}

/// The rest of a commit's limit.
struct CommitBudget {
    private let limit: CommitLimit
    private let before: UInt32?
    private var rows = 0
    private var bytes: Int64 = 0

    init(_ limit: CommitLimit = CommitLimit(), in database: Database) {
        self.limit = limit
        before = database.pagesWritten
    }

    /// - Parameter bytes: that were worked on besides what comes to the log.
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
    /// Bytes of a page, as SQLite makes them by default.
    static let pageSize: Int64 = 4_096

    /// Pages that this connection has written so far; the count goes round. Within a transaction it grows as soon as the
    /// changes fill the cache of 2 MB. `nil`: SQLite does not tell.
    fileprivate var pagesWritten: UInt32? {
        var (current, highest): (Int32, Int32) = (0, 0)
        guard let sqliteConnection,
            sqlite3_db_status(sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &current, &highest, 0) == SQLITE_OK
        else { return nil }
        return UInt32(bitPattern: current)
    }

    /// Runs a statement again and again, for more rows each time as long as they are small.
    ///
    /// - Parameter body: runs it for so many rows at most, and gives back for how many it did.
    /// - Returns: for how many in all, and whether these were all that there are.
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
    /// Performs `step` for each of `items`, in as many commits as it takes. Where one fails, those before it stay.
    ///
    /// - Parameters:
    ///   - finish: performed at the end of each commit.
    ///   - step: gives back the bytes that it worked on besides what it wrote.
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

    /// Runs a statement for as many rows as one commit takes.
    ///
    /// - Returns: for how many, and whether these were all that there are.
    func inSteps(
        _ body: @escaping @Sendable (_ database: Database, _ rows: Int) throws -> Int
    ) async throws(StoreError) -> (rows: Int, isAll: Bool) {
        try await inCommit { limit, database in
            try database.inSteps(within: limit) { try body(database, $0) }
        }
    }

    /// Performs `body`, which keeps within a limit, in a commit.
    func inCommit<Value: Sendable>(
        _ body: @escaping @Sendable (CommitLimit, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        var limit = CommitLimit()
        return try await withinRoom(&limit, body)
    }

    /// Performs `body` in a commit. On a full disk it is tried with less each time, after the log gave its room back.
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
