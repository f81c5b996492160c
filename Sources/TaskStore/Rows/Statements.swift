import GRDB

extension Database {
    /// Executes one statement; the prepared statement is cached.
    func run(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
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
