import GRDB
import GRDBSQLite

/// The execution of a statement by SQLite itself, without the objects that GRDB allocates for each execution and row.
struct StatementSteps {
    private let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    /// Proceeds to the next row.
    ///
    /// - Returns: whether there is one.
    mutating func next() throws -> Bool {
        let result = sqlite3_step(handle)
        if result == SQLITE_ROW { return true }
        guard result == SQLITE_DONE else {
            let connection = sqlite3_db_handle(handle)
            throw DatabaseError(
                resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
                message: String(cString: sqlite3_errmsg(connection)))
        }
        return false
    }

    /// Ends the execution, also before the last row.
    mutating func end() { _ = sqlite3_reset(handle) }  // returns the result of the last step again
}

/// An executor of statements for many rows. It binds and reads values without the arrays and cursors that GRDB
/// allocates.
struct StatementRunner {
    private let database: Database
    /// Large enough for the texts of a row as a rule. From 64 KiB on, glibc passes over its free memory at each release.
    private let texts = TextBuffer(size: 8 << 10)

    init(_ database: Database) { self.database = database }

    /// Executes a statement; the prepared statement is cached.
    func run(_ sql: String, bind: (inout RowBinding) -> Void) throws {
        _ = try firstRow(sql, bind: bind) { _ in }
    }

    /// Executes a statement like ``run(_:bind:)``.
    ///
    /// - Returns: what `decode` makes of the first row; `nil` if the statement returns none.
    func firstRow<Value>(
        _ sql: String, bind: (inout RowBinding) -> Void, _ decode: (RowReader) throws -> Value
    ) throws -> Value? {
        var binding = RowBinding(statement: try database.cachedStatement(sql: sql), texts: texts)
        bind(&binding)
        return try binding.firstRow(decode)
    }

    /// Inserts rows like ``Database/insert(_:_:columns:texts:bind:)``.
    func insert<Rows: RandomAccessCollection>(
        _ rows: Rows, _ head: String, columns: Int, bind: (Rows.Element, inout RowBinding) throws -> Void
    ) throws {
        try database.insert(rows, head, columns: columns, texts: texts, bind: bind)
    }
}
