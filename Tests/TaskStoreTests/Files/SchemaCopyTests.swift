import GRDB
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("The copy of a database before its schema is updated")
struct SchemaCopyTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("dld.db") }

    init() throws { directory = try TemporaryDirectory() }

    /// Makes a database of an earlier program, with a mark by which it is recognised.
    private func make(schema: String, opening: Int64 = 1, mark: String = "old") throws {
        // SQLite would apply the log of another database.
        for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        let pool = try DatabasePool(path: path)
        try Schema.migrator.migrate(pool, upTo: schema)
        try pool.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
            try database.setMeta("opening", to: opening)
            try database.setMetaText("mark", to: mark)
        }
        try pool.close()
    }

    private func copies() -> [String] {
        TemporaryDirectory.names(beneath: directory.path).filter { $0.hasPrefix("dld.db.") }
    }

    private func read(_ name: String, _ sql: String) throws -> String? {
        let queue = try DatabaseQueue(path: directory.file(name))
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction { try String.fetchOne($0, sql: sql) }
    }

    private static let newest = "SELECT max(CAST(substr(identifier, 2) AS INTEGER)) FROM grdb_migrations"
    private static let mark = "SELECT value FROM meta WHERE name = 'mark'"

    @Test(
        "an update keeps the database as it was, without a log, for its owner alone", arguments: ["v1", "v14", "v15"])
    func update(schema: String) throws {
        try make(schema: schema)
        let store = try TaskStore(directory: directory.path)
        try store.close()
        let copy = "dld.db.schema-\(schema)"
        #expect(store.updateNote?.contains("\(copy) is the database before the update") == true)
        #expect(copies() == [copy])
        #expect(try read(copy, Self.newest) == String(schema.dropFirst()))
        #expect(try read(copy, Self.mark) == "old")
        #expect(try read(copy, "PRAGMA journal_mode") == "delete")
        var status = stat()
        #expect(stat(directory.file(copy), &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test("a copy can be used as the database, and its journal differs from the original's")
    func use() throws {
        try make(schema: "v15")
        let store = try TaskStore(directory: directory.path)
        try store.close()
        let other = try TemporaryDirectory()
        #expect(rename(directory.file("dld.db.schema-v15"), other.file("dld.db")) == 0)
        let restored = try TaskStore(directory: other.path)
        try restored.close()
        #expect(restored.identity == store.identity)
        #expect(restored.journal.name != store.journal.name)
        #expect(restored.journal.origins.map(\.name) == [store.journal.name])
    }

    @Test("a new database and one of the present schema need no copy")
    func none() throws {
        for _ in 0..<2 {
            let store = try TaskStore(directory: directory.path)
            #expect(store.updateNote == nil)
            try store.close()
        }
        #expect(copies().isEmpty)
    }

    /// Leaves a copy of the database's schema v1, made since the opening 7.
    private func leaveCopy() throws {
        try make(schema: "v1", opening: 7)
        #expect(try read("dld.db", "PRAGMA journal_mode = DELETE") == "delete")
        #expect(rename(path, directory.file("dld.db.schema-v1")) == 0)
    }

    @Test("after an interrupted update the copy from before it is kept")
    func interrupted() throws {
        try leaveCopy()
        try make(schema: "v5", opening: 7)
        let store = try TaskStore(directory: directory.path)
        try store.close()
        #expect(store.updateNote?.contains("dld.db.schema-v1 is the database before the update") == true)
        #expect(copies() == ["dld.db.schema-v1"])
    }

    @Test("a copy of the same schema is replaced, since the database may have changed since")
    func sameSchema() throws {
        try make(schema: "v15", opening: 7)
        try TaskStore(directory: directory.path).close()
        try make(schema: "v15", opening: 7, mark: "newer")
        try TaskStore(directory: directory.path).close()
        #expect(copies() == ["dld.db.schema-v15"])
        #expect(try read("dld.db.schema-v15", Self.mark) == "newer")
    }

    @Test("a copy from before an earlier update is replaced")
    func replaced() throws {
        try leaveCopy()
        try make(schema: "v5", opening: 8)
        try TaskStore(directory: directory.path).close()
        #expect(copies() == ["dld.db.schema-v5"])
    }

    @Test("what a crash left of a copy is removed")
    func draft() throws {
        try directory.write("half", to: "dld.db.copying-schema")
        try make(schema: "v15")
        try TaskStore(directory: directory.path).close()
        #expect(copies() == ["dld.db.schema-v15"])
    }

    @Test("without room for a copy only steps that lose nothing are carried out", arguments: ["v1", "v15"])
    func noRoom(schema: String) throws {
        try make(schema: schema)
        let pool = try DatabasePool(path: path)
        defer { try? pool.close() }
        let room = DiskRoom(free: 65 << 20, whole: 1 << 40)
        let copy = SchemaCopy(directory: directory.path)
        if schema == "v15" {
            let small = DiskRoom(free: 64 << 20, whole: 1 << 40)
            #expect(try copy.make(of: pool, room: small)?.contains("without a copy") == true)
        } else {
            let small = DiskRoom(free: 64 << 20, whole: 1 << 40)
            #expect { try copy.make(of: pool, room: small) } throws: { error in
                "\(error)".contains("has no room for a copy of the database") && "\(error)".contains("schema v")
            }
        }
        #expect(copies().isEmpty)
        #expect(try copy.make(of: pool, room: room) != nil)
        #expect(copies() == ["dld.db.schema-\(schema)"])
    }

    @Test("a copy is removed after a week")
    func expiry() throws {
        try make(schema: "v15")
        let store = try TaskStore(directory: directory.path)
        defer { try? store.close() }
        let expiry = try #require(store.removeExpiredSchemaCopy(now: 0))
        #expect(store.removeExpiredSchemaCopy(now: expiry - 1) == expiry)
        #expect(copies() == ["dld.db.schema-v15"])
        #expect(store.removeExpiredSchemaCopy(now: expiry) == nil)
        #expect(copies().isEmpty)
    }

    @Test("a step that removes a table or a column is known to lose data")
    func lossySteps() throws {
        let queue = try DatabaseQueue()
        var before: Set<String> = []
        for step in Schema.migrator.migrations {
            try Schema.migrator.migrate(queue, upTo: step)
            let columns = try queue.read { database in
                try String.fetchSet(
                    database,
                    sql: """
                        SELECT list.name || '.' || info.name FROM pragma_table_list AS list,
                            pragma_table_info(list.name) AS info WHERE list.type = 'table'
                        """)
            }
            if !columns.isSuperset(of: before) { #expect(Schema.losesData([step]), "\(step)") }
            before = columns
        }
        #expect(!Schema.losesData(["v16", "v17", "v18"]))
    }
}
