import GRDB

extension Database {
    /// Executes one statement; the prepared statement is cached.
    func run(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Performs `body`, which only reads, in one transaction.
    ///
    /// GRDB would prepare the statements that begin and end it each time, and a daemon makes a dozen reads for each task.
    func inSnapshot<Value>(_ body: () throws -> Value) throws -> Value {
        // A rollback that failed has left a transaction open.
        if isInsideTransaction { try self.rollback() }
        try run("BEGIN")
        do {
            let value = try body()
            try run("COMMIT")
            return value
        } catch {
            try? self.rollback()  // the next read tries it again
            throw error
        }
    }

    /// Performs `body` and rolls back its changes.
    func undoing<Value>(_ body: () throws -> Value) throws -> Value {
        try run("SAVEPOINT undone")
        // If `body` fails, the caller's own savepoint rolls back the changes.
        let value = try body()
        try run("ROLLBACK TO undone")
        try run("RELEASE undone")
        return value
    }
}
