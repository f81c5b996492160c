import GRDB
import GRDBSQLite
import TaskModel

/// The bytes of the texts that a statement is bound to, side by side: SQLite would copy them one by one.
final class TextBuffer {
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
struct RowBinding {
    private let handle: OpaquePointer
    private let texts: TextBuffer
    private var index: Int32 = 0
    /// Of the values bound so far.
    private var failure: Int32 = SQLITE_OK

    /// - Parameter texts: of the statement before; it is used anew.
    init(statement: Statement, texts: TextBuffer) {
        handle = statement.sqliteStatement
        self.texts = texts
        texts.clear()
        _ = sqlite3_reset(handle)  // repeats what the last step returned
    }

    mutating func bind(_ value: Int64?) {
        index += 1
        note(value.map { sqlite3_bind_int64(handle, index, $0) } ?? sqlite3_bind_null(handle, index))
    }

    mutating func bind(_ text: String?) {
        index += 1
        guard var text else { return note(sqlite3_bind_null(handle, index)) }
        let code = text.withUTF8 { bytes in
            if let place = texts.append(bytes) {
                return sqlite3_bind_text(handle, index, place, Int32(bytes.count), nil)
            }
            return bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_bind_text(handle, index, $0.baseAddress, Int32($0.count), Self.copied)
            }
        }
        note(code)
    }

    /// Keeps the first failure: a value that was not bound would be stored as NULL.
    private mutating func note(_ code: Int32) {
        if code != SQLITE_OK, failure == SQLITE_OK { failure = code }
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

    mutating func bind(_ standing: TaskStanding) {
        bind(standing.state.rawValue)
        bind(standing.reason?.rawValue)
        bind(standing.notBefore)
    }

    /// Afterwards the statement is bound to nothing.
    func run() throws {
        defer {
            _ = sqlite3_reset(handle)  // repeats what the step returned
            _ = sqlite3_clear_bindings(handle)  // never fails
        }
        guard failure == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: failure)) }
        let result = sqlite3_step(handle)
        guard result == SQLITE_DONE else {
            let connection = sqlite3_db_handle(handle)
            throw DatabaseError(
                resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
                message: String(cString: sqlite3_errmsg(connection)))
        }
    }
}

extension Database {
    /// Rows in one statement: what a statement costs by itself is shared by so many.
    private static let rowsInStatement = 32

    /// Inserts rows, many in a statement.
    ///
    /// - Parameters:
    ///   - head: `INSERT INTO table (column, …) VALUES`
    ///   - columns: how many there are.
    ///   - bind: binds the values of a row, one for each column.
    func insert<Rows: RandomAccessCollection>(
        _ rows: Rows, _ head: String, columns: Int, bind: (Rows.Element, inout RowBinding) throws -> Void
    ) throws {
        guard !rows.isEmpty else { return }
        let row = "(" + Array(repeating: "?", count: columns).joined(separator: ", ") + ")"
        func statement(rows: Int) throws -> Statement {
            try cachedStatement(sql: head + Array(repeating: row, count: rows).joined(separator: ", "))
        }
        let one = try statement(rows: 1)
        let many = rows.count < Self.rowsInStatement ? one : try statement(rows: Self.rowsInStatement)
        let texts = TextBuffer()
        var rest = rows[...]
        while !rest.isEmpty {
            let count = rest.count < Self.rowsInStatement ? 1 : Self.rowsInStatement
            var binding = RowBinding(statement: count == 1 ? one : many, texts: texts)
            for row in rest.prefix(count) { try bind(row, &binding) }
            try binding.run()
            rest = rest.dropFirst(count)
        }
    }
}
