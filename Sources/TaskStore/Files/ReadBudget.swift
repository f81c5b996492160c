import GRDB
import GRDBSQLite
import Glibc

/// The work that one read of the database may take. SQLite itself keeps it: its progress handler ends the statement.
struct ReadBudget: Sendable {
    /// The number of instructions of SQLite's virtual machine. A row that is passed over takes some twenty.
    var instructions: Int
    /// The processor time of the reading thread in milliseconds. One instruction may compare long texts.
    var time: Int64
    /// Whether the read ends when the Swift task that asked for it is cancelled.
    var endsWithCaller = false

    /// The budget of the daemon's own reads, which no healthy database exhausts.
    static let own = ReadBudget(instructions: 20_000_000_000, time: 120_000)
    /// The budget of a read whose cost a user chooses by a filter.
    static let chosen = ReadBudget(instructions: 200_000_000, time: 3_000)
    /// The budget of a read for a user who may be gone before it ends.
    static let asked: ReadBudget = {
        var budget = chosen
        budget.endsWithCaller = true
        return budget
    }()

    /// The number of instructions between two checks. With texts of the greatest length they take some milliseconds.
    private static let interval: CInt = 500

    /// Performs `body`, whose statements end with an error once the budget is exhausted or the read is unwanted.
    ///
    /// - Parameters:
    ///   - isClosing: whether the store is being closed.
    ///   - caller: the Swift task that asked for the read.
    /// - Throws: ``StoreError/tooCostly``, ``StoreError/closed``, or the error of `body`.
    func keep<Value>(
        on database: Database, for caller: UnsafeCurrentTask?, isClosing: @escaping () -> Bool,
        _ body: (Database) throws -> Value
    ) throws -> Value {
        guard let connection = database.sqliteConnection else { return try body(database) }
        var account = Account(budget: self, caller: endsWithCaller ? caller : nil, isClosing: isClosing)
        return try withUnsafeMutablePointer(to: &account) { account in
            sqlite3_progress_handler(
                connection, Self.interval,
                { context in
                    guard let context else { return 0 }
                    return context.assumingMemoryBound(to: Account.self).pointee.mustEnd() ? 1 : 0
                }, account)
            defer { sqlite3_progress_handler(connection, 0, nil, nil) }
            do {
                return try body(database)
            } catch {
                throw account.pointee.end ?? error
            }
        }
    }

    /// The account of a read in progress.
    private struct Account {
        let budget: ReadBudget
        let caller: UnsafeCurrentTask?
        let isClosing: () -> Bool
        /// The processor time at the first check; most reads end before it.
        var began: Int64?
        var instructions = 0
        /// The reason why the read was ended; `nil` while it goes on.
        var end: StoreError?

        init(budget: ReadBudget, caller: UnsafeCurrentTask?, isClosing: @escaping () -> Bool) {
            self.budget = budget
            self.caller = caller
            self.isClosing = isClosing
        }

        mutating func mustEnd() -> Bool {
            instructions += Int(ReadBudget.interval)
            if isClosing() || caller?.isCancelled == true {
                end = .closed
            } else if instructions > budget.instructions {
                end = .tooCostly
            } else {
                let now = Self.processorTime()
                let began = began ?? now
                self.began = began
                if now - began > budget.time { end = .tooCostly }
            }
            return end != nil
        }

        /// Returns the processor time of this thread in milliseconds. The time in which others have the processor does
        /// not count.
        private static func processorTime() -> Int64 {
            var time = timespec()
            _ = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)  // fails only for an unknown clock
            return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
        }
    }
}
