import GRDB
import Testing

@testable import TaskStore

@Suite("Rows that are bound by hand")
struct RowBindingTests {
    private func database() throws -> DatabaseQueue {
        let queue = try DatabaseQueue()
        try queue.write { try $0.execute(sql: "CREATE TABLE t (a, b)") }
        return queue
    }

    @Test("values go in as they are", arguments: [1, 31, 32, 33, 100])
    func values(count: Int) throws {
        let queue = try database()
        try queue.write { db in
            try db.insert(0..<count, "INSERT INTO t (a, b) VALUES", columns: 2) { number, row in
                row.bind(number % 2 == 0 ? Int64(number) : nil)
                row.bind(number % 3 == 0 ? "text \(number)" : nil)
            }
            let rows = try Row.fetchAll(db, sql: "SELECT a, b FROM t ORDER BY rowid")
            #expect(rows.count == count)
            for (number, row) in rows.enumerated() {
                let (value, text): (Int64?, String?) = (row[0], row[1])
                #expect(value == (number % 2 == 0 ? Int64(number) : nil))
                #expect(text == (number % 3 == 0 ? "text \(number)" : nil))
            }
        }
    }

    @Test("a value that SQLite does not take fails the insertion, and the next one is as good as ever")
    func refused() throws {
        let queue = try database()
        try queue.write { db in
            #expect(throws: DatabaseError.self) {
                try db.insert([1], "INSERT INTO t (a, b) VALUES", columns: 2) { number, row in
                    row.bind(Int64(number))
                    row.bind("text")
                    // The table has no third column (SQLITE_RANGE).
                    row.bind("more")
                }
            }
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM t") == 0)
            try db.insert([1], "INSERT INTO t (a, b) VALUES", columns: 2) { number, row in
                row.bind(Int64(number))
                row.bind("text")
            }
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM t") == 1)
        }
    }
}
