import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("The schema of the database")
struct SchemaTests {
    /// The schema with a step that changes every task.
    private static var laterMigrator: DatabaseMigrator {
        var migrator = Schema.migrator
        migrator.registerMigration("2", foreignKeyChecks: .immediate) { database in
            try database.execute(
                sql: """
                    ALTER TABLE task ADD COLUMN comment TEXT;
                    UPDATE task SET comment = 'from ' || url;
                    """)
        }
        return migrator
    }

    @Test("a later step keeps tasks, their data in other tables and their totals; this program then refuses")
    func laterStep() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let first = try await fixture.add(inState: .completed)
        let rest = try await fixture.add(
            .sample("https://example.org/b", batch: "b").with(password: "secret"),
            .sample("https://example.org/c", key: "k"))
        try await fixture.conclude(rest[1], .inState(.waiting, until: 5_000), resumeData: [7])
        let (ids, counts) = ([first] + rest, try store.counts(owner: nil))
        let works = try ids.compactMap { try store.work(for: $0) }
        let totals = (try store.keptBytes(of: 1000), try store.recordBytes(of: 1000))
        let events = try store.events(after: 0, limit: 99).events

        try Self.laterMigrator.migrate(store.pool)

        #expect(try fixture.number("SELECT count(*) FROM task WHERE comment = 'from ' || url") == 3)
        #expect(try store.counts(owner: nil) == counts)
        for (id, work) in zip(ids, works) {
            let kept = try #require(try store.work(for: id))
            #expect(kept.record == work.record && kept.secrets == work.secrets && kept.resumeData == work.resumeData)
        }
        #expect(try store.keptBytes(of: 1000) == totals.0 && store.recordBytes(of: 1000) == totals.1)
        #expect(try store.events(after: 0, limit: 99).events == events)
        _ = try await store.remove(ids, owner: nil, now: 9_000)
        #expect(try store.counts(owner: nil) == [:] && store.recordBytes(of: 1000) == 0)
        try store.close()
        let error = #expect(throws: StoreError.self) { try TaskStore(directory: fixture.directory.path) }
        #expect(error == .newer(path: fixture.databasePath, schema: "2", version: nil))
    }

    @Test("a step that fails leaves the database as it was")
    func failedStep() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        var migrator = Self.laterMigrator
        migrator.registerMigration("3") { try $0.execute(sql: "DELETE FROM task; SELECT * FROM absent") }
        #expect(throws: DatabaseError.self) { try migrator.migrate(fixture.store.pool) }
        #expect(try fixture.store.record(id, owner: nil) != nil)
        #expect(try fixture.number("SELECT max(CAST(identifier AS INTEGER)) FROM grdb_migrations") == 2)
    }
}
