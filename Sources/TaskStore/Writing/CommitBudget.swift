import GRDB
import GRDBSQLite
import TaskModel

/// A limit on the rows, bytes and time of one commit, so that other callers do not wait long for it and it fits on an almost
/// full disk.
struct CommitLimit: Sendable, Equatable {
    /// The maximum number of rows in one commit, unless a single call needs more, so that a commit does not delay
    /// checkpoints.
    static let rowsInCommit = 5_000
    /// The approximate number of log bytes: a commit ends with the row that exceeds it.
    static let bytesInCommit: Int64 = 4 << 20
    /// The time after which a commit ends with the current row. Others pass between two commits.
    static let timeInCommit = Duration.milliseconds(250)
    /// The number of rows from which the limit is halved once the disk is full.
    private static let rowsAfterFull = 64

    private(set) var rows = Self.rowsInCommit
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
    mutating func grow() { rows = min(rows * 2, Self.rowsInCommit) }
}

/// The remaining part of a commit's limit.
struct CommitBudget {
    private let limit: CommitLimit
    private let before: UInt32?
    private var rows = 0
    private var bytes: Int64 = 0
    private let began = ContinuousClock.now

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
        guard rows < limit.rows, ContinuousClock.now - began < CommitLimit.timeInCommit, let before,
            let now = database.pagesWritten
        else { return true }
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
