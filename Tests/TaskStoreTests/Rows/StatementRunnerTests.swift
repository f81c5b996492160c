import GRDB
import Testing

@testable import TaskStore

@Suite("Statements for many rows")
struct StatementRunnerTests {
    private func withTable<Value>(_ body: (Database, StatementRunner) throws -> Value) throws -> Value {
        try DatabaseQueue().write { database in
            try database.execute(sql: "CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT UNIQUE) STRICT")
            return try body(database, StatementRunner(database))
        }
    }

    private func texts(_ database: Database) throws -> [String?] {
        try database.rows("SELECT text FROM word ORDER BY id") { try $0.textOrNil(0) }
    }

    private func insert(_ text: String?, _ runner: StatementRunner) throws -> Int64? {
        try runner.firstRow("INSERT INTO word (text) VALUES (?) RETURNING id", bind: { $0.bind(text) }) {
            try $0.integer(0)
        }
    }

    @Test("values of any length are stored, and results come back")
    func values() throws {
        let words = ["", "grüße", String(repeating: "a", count: 100_000), "last"]
        try withTable { database, runner in
            let ids = try words.map { try insert($0, runner) }
            #expect(ids == [1, 2, 3, 4])
            #expect(try texts(database) == words)
        }
    }

    @Test("the first of several rows is returned; `nil` where there is none")
    func firstRow() throws {
        try withTable { _, runner in
            for text in ["b", "a"] { _ = try insert(text, runner) }
            let found = try [0, 2].map { id in
                try runner.firstRow(
                    "SELECT text FROM word WHERE id > ? ORDER BY text", bind: { $0.bind(id) }, { try $0.text(0) })
            }
            #expect(found == ["a", nil])
        }
    }

    @Test("all rows that a statement changes are changed, though only the first is returned")
    func allRows() throws {
        try withTable { database, runner in
            for text in ["a", "b", "c"] { _ = try insert(text, runner) }
            let sql = "UPDATE word SET text = text || ? RETURNING id"
            let first = try runner.firstRow(sql, bind: { $0.bind("!") }, { try $0.integer(0) })
            #expect(first == 1)
            #expect(try texts(database) == ["a!", "b!", "c!"])
        }
    }

    @Test("after a refused value and after a failed reading, the statement can be used again")
    func failure() throws {
        try withTable { database, runner in
            _ = try insert("a", runner)
            #expect(throws: DatabaseError.self) { try insert("a", runner) }
            #expect(throws: StoreError.self) {
                try runner.firstRow("SELECT text FROM word", bind: { _ in }) { (row) throws in try row.integer(0) }
            }
            #expect(try insert(nil, runner) == 2)
            try runner.run("DELETE FROM word WHERE text = ?") { $0.bind("a") }
            #expect(try texts(database) == [nil])
        }
    }
}
