import GRDB
import GRDBSQLite
import TaskModel

/// A contiguous buffer for the texts bound to a statement, which avoids one copy by SQLite per text.
final class TextBuffer {
    private let bytes: UnsafeMutableRawBufferPointer
    private var used = 0

    /// - Parameter size: the number of bytes. The texts of a statement that do not fit are copied by SQLite.
    init(size: Int) { bytes = .allocate(byteCount: size, alignment: 1) }

    deinit { bytes.deallocate() }

    func clear() { used = 0 }

    /// Appends a text.
    ///
    /// - Returns: the address of the copy, or `nil` if there is not enough room.
    func append(_ text: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar>? {
        guard used + text.count <= bytes.count, let place = bytes.baseAddress?.advanced(by: used) else { return nil }
        UnsafeMutableRawBufferPointer(start: place, count: text.count).copyBytes(from: text)
        used += text.count
        return UnsafePointer(place.assumingMemoryBound(to: CChar.self))
    }
}

/// A sequential binder of a statement's values. It avoids the arrays that GRDB would allocate for each row.
struct RowBinding {
    private let handle: OpaquePointer
    private let texts: TextBuffer
    private var index: Int32 = 0
    /// The first error code of the values bound so far.
    private var failure: Int32 = SQLITE_OK

    /// Resets the statement for new values.
    ///
    /// - Parameter texts: the buffer of the previous statement, which is cleared and reused.
    init(statement: Statement, texts: TextBuffer) {
        handle = statement.sqliteStatement
        self.texts = texts
        texts.clear()
        _ = sqlite3_reset(handle)  // returns the result of the last step again
    }

    mutating func bind(_ value: Int64?) {
        index += 1
        record(value.map { sqlite3_bind_int64(handle, index, $0) } ?? sqlite3_bind_null(handle, index))
    }

    mutating func bind(_ text: String?) {
        index += 1
        guard var text else { return record(sqlite3_bind_null(handle, index)) }
        let code = text.withUTF8 { bytes in
            if let place = texts.append(bytes) {
                return sqlite3_bind_text(handle, index, place, Int32(bytes.count), nil)
            }
            return bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_bind_text(handle, index, $0.baseAddress, Int32($0.count), Self.copied)
            }
        }
        record(code)
    }

    /// Records the first failure: a value that was not bound would be stored as NULL.
    private mutating func record(_ code: Int32) {
        if code != SQLITE_OK, failure == SQLITE_OK { failure = code }
    }

    /// `SQLITE_TRANSIENT`: SQLite makes its own copy of the text.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    /// Binds a failure as three columns: code, message and HTTP status.
    mutating func bind(_ failure: TaskFailure?) {
        bind(failure?.code.rawValue)
        bind(failure?.message)
        bind(failure?.httpStatus.map(Int64.init))
    }

    /// Binds a lifecycle as three columns: state, reason and the time before which nothing happens.
    mutating func bind(_ lifecycle: TaskLifecycle) {
        bind(lifecycle.storedState.rawValue)
        bind(lifecycle.reason?.rawValue)
        bind(lifecycle.notBefore)
    }

    /// Executes the statement and clears its bindings.
    ///
    /// - Returns: what `decode` makes of the first row; `nil` if the statement returns none.
    func firstRow<Value>(_ decode: (RowReader) throws -> Value) throws -> Value? {
        defer { _ = sqlite3_clear_bindings(handle) }  // never fails
        guard failure == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: failure)) }
        var steps = StatementSteps(handle)
        defer { steps.end() }
        guard try steps.next() else { return nil }
        let value = try decode(RowReader(handle))
        // The statement is complete only after its last row.
        while try steps.next() {}
        return value
    }

    /// Executes a statement that returns no rows, and clears its bindings.
    func run() throws { _ = try firstRow { _ in } }
}

extension Database {
    /// The numbers of rows per statement, over which the fixed cost of a statement is distributed. A statement that fires
    /// triggers also keeps a copy of each page that it changes.
    private static let rowsInStatement = [32, 8, 1]

    /// Inserts rows, several per statement.
    ///
    /// - Parameters:
    ///   - head: the beginning of the statement: `INSERT INTO table (column, …) VALUES`.
    ///   - columns: the number of columns.
    ///   - texts: the memory for the texts of one statement.
    ///   - bind: binds the values of a row, one for each column.
    func insert<Rows: RandomAccessCollection>(
        _ rows: Rows, _ head: String, columns: Int, texts: TextBuffer = TextBuffer(size: 64 << 10),
        bind: (Rows.Element, inout RowBinding) throws -> Void
    ) throws {
        let row = "(" + Array(repeating: "?", count: columns).joined(separator: ", ") + ")"
        var rest = rows[...]
        for count in Self.rowsInStatement where rest.count >= count {
            let statement = try cachedStatement(
                sql: head + Array(repeating: row, count: count).joined(separator: ", "))
            while rest.count >= count {
                var binding = RowBinding(statement: statement, texts: texts)
                for row in rest.prefix(count) { try bind(row, &binding) }
                try binding.run()
                rest = rest.dropFirst(count)
            }
        }
    }
}
