import GRDB
import GRDBSQLite
import TaskModel

/// A reader that validates the types of a row's values. A value of the wrong type is an error, while GRDB's own
/// conversion would end the process.
///
/// Reads the columns from SQLite itself, which takes a fraction of the time of GRDB's generic conversion.
struct RowReader {
    /// The statement, which stands at the row.
    private let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    private func damaged(_ index: Int) -> StoreError {
        .corrupt("a row has a value of the wrong type in column \(index)")
    }

    /// Returns whether the column has a value.
    ///
    /// - Throws: ``StoreError/corrupt(_:)`` for a value that is not of the type.
    private func has(_ type: Int32, _ index: Int) throws(StoreError) -> Bool {
        switch sqlite3_column_type(handle, Int32(index)) {
        case type: true
        case SQLITE_NULL: false
        default: throw damaged(index)
        }
    }

    func integerOrNil(_ index: Int) throws(StoreError) -> Int64? {
        try has(SQLITE_INTEGER, index) ? sqlite3_column_int64(handle, Int32(index)) : nil
    }

    func integer(_ index: Int) throws(StoreError) -> Int64 {
        guard let integer = try integerOrNil(index) else { throw damaged(index) }
        return integer
    }

    func int(_ index: Int) throws(StoreError) -> Int {
        guard let int = Int(exactly: try integer(index)) else { throw damaged(index) }
        return int
    }

    /// Returns a sum by SQLite's `total`, which is a floating-point number and 0 if there are no rows.
    func whole(_ index: Int) throws(StoreError) -> Int {
        guard try has(SQLITE_FLOAT, index),
            let whole = Int(exactly: sqlite3_column_double(handle, Int32(index)))
        else { throw damaged(index) }
        return whole
    }

    func textOrNil(_ index: Int) throws(StoreError) -> String? {
        guard try has(SQLITE_TEXT, index) else { return nil }
        // The bytes are absent only where memory is short. The length is known once the text is.
        guard let bytes = sqlite3_column_text(handle, Int32(index)) else { throw damaged(index) }
        let count = Int(sqlite3_column_bytes(handle, Int32(index)))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    func text(_ index: Int) throws(StoreError) -> String {
        guard let text = try textOrNil(index) else { throw damaged(index) }
        return text
    }

    func bytesOrNil(_ index: Int) throws(StoreError) -> [UInt8]? {
        guard try has(SQLITE_BLOB, index) else { return nil }
        // An empty value has no bytes.
        let bytes = sqlite3_column_blob(handle, Int32(index))
        return [UInt8](
            UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, Int32(index)))))
    }

    func word<Word: RawRepresentable<String>>(_ index: Int) throws(StoreError) -> Word {
        guard let word = Word(rawValue: try text(index)) else { throw damaged(index) }
        return word
    }

    func wordOrNil<Word: RawRepresentable<String>>(_ index: Int) throws(StoreError) -> Word? {
        guard let text = try textOrNil(index) else { return nil }
        guard let word = Word(rawValue: text) else { throw damaged(index) }
        return word
    }

    func owner(_ index: Int) throws(StoreError) -> UInt32 {
        guard let owner = UInt32(exactly: try integer(index)) else { throw damaged(index) }
        return owner
    }

    func id(_ index: Int) throws(StoreError) -> TaskID {
        TaskID(try integer(index))
    }

    /// Returns the lifecycle in the three columns from `first` on: state, reason, not_before.
    func lifecycle(_ first: Int) throws(StoreError) -> TaskLifecycle {
        let state: TaskState = try word(first)
        let lifecycle = TaskLifecycle(
            state: state, reason: try wordOrNil(first + 1), notBefore: try integerOrNil(first + 2))
        guard let lifecycle else {
            throw .corrupt("a task in state \(state.rawValue) has a reason that does not apply to it")
        }
        return lifecycle
    }

    /// Returns the failure in the three columns from `first` on: code, message, status.
    func failure(_ first: Int) throws(StoreError) -> TaskFailure? {
        guard let code = try textOrNil(first) else { return nil }
        var status: Int?
        if let stored = try integerOrNil(first + 2) { status = Int(exactly: stored) }
        return TaskFailure(
            code: ErrorCode(rawValue: code), message: try textOrNil(first + 1) ?? "", httpStatus: status)
    }
}

extension Database {
    /// Returns all rows of a query; the prepared statement is cached.
    func rows<Value>(
        _ sql: String, _ arguments: StatementArguments = StatementArguments(), _ decode: (RowReader) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try withSteps(sql, arguments) { steps, row in
            while try steps.next() { values.append(try decode(row)) }
        }
        return values
    }

    /// Returns rows like ``rows(_:_:_:)``, up to and including the row with which their size reaches `limit`.
    ///
    /// - Parameter bytes: returns the size of a row.
    func rows<Value>(
        _ sql: String, _ arguments: StatementArguments, within limit: Int64, _ bytes: (Value) -> Int64,
        _ decode: (RowReader) throws -> Value
    ) throws -> [Value] {
        var (values, total) = ([] as [Value], 0 as Int64)
        try withSteps(sql, arguments) { steps, row in
            while total < limit, try steps.next() {
                let value = try decode(row)
                total = total.addingClamped(bytes(value))
                values.append(value)
            }
        }
        return values
    }

    func firstRow<Value>(
        _ sql: String, _ arguments: StatementArguments = StatementArguments(), _ decode: (RowReader) throws -> Value
    ) throws -> Value? {
        try withSteps(sql, arguments) { steps, row in try steps.next() ? try decode(row) : nil }
    }

    private func withSteps<Value>(
        _ sql: String, _ arguments: StatementArguments, _ body: (inout StatementSteps, RowReader) throws -> Value
    ) throws -> Value {
        let statement = try cachedStatement(sql: sql)
        try statement.setArguments(arguments)
        var steps = StatementSteps(statement.sqliteStatement)
        defer { steps.end() }
        return try body(&steps, RowReader(statement.sqliteStatement))
    }
}

extension TaskLifecycle {
    /// The state as it is stored. A running task is stored as `queued`, which it is after the daemon's end.
    var storedState: TaskState { state == .active ? .queued : state }

    /// The lifecycle as three columns.
    var arguments: [(any DatabaseValueConvertible)?] { [storedState.rawValue, reason?.rawValue, notBefore] }
}

extension TaskFailure? {
    /// The failure as three columns.
    var arguments: [(any DatabaseValueConvertible)?] { [self?.code.rawValue, self?.message, self?.httpStatus] }
}
