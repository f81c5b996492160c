import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Bytes that owners' downloads take up")
struct OwnerBytesTests {
    private func note(
        _ id: TaskID, done: Int64, of total: Int64? = nil, begun: Bool = true, _ fixture: StoreFixture,
        _ event: TaskLifecycle.Event = .park(.quota, until: nil)
    ) async throws {
        var lifecycle = TaskLifecycle()
        try lifecycle.apply(.start)
        try lifecycle.apply(event)
        let progress = TaskProgress(
            bytesDone: done, bytesTotal: total, bytesFetched: done, startedAt: begun ? 1_000 : nil)
        let conclusion = TaskConclusion(
            lifecycle: lifecycle, attempts: 1, failures: 0, finishedAt: lifecycle.state.isEnded ? 2_000 : nil)
        _ = try await fixture.store.write([.concluded(id, progress, conclusion)], now: 2_000)
    }

    @Test("A31: they are summed with every change of a download, and an upload has none")
    func sum() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let ids = try await fixture.add(
            .sample(), .sample(), .sample(kind: .upload), .sample(owner: 1001), .sample(owner: 1001))
        #expect(try store.keptBytes(of: 1000) == 0)
        for (id, bytes) in zip(ids, [5, 7, 100, 11, 13] as [Int64]) {
            let progress = TaskProgress(bytesDone: bytes, bytesTotal: nil, bytesFetched: 1)
            _ = try await store.write([.checkpoint(id, progress)], now: 1)
        }
        #expect(try store.keptBytes(of: 1000) == 12)
        #expect(try store.keptBytes(of: 1001) == 24 && store.keptBytes(of: 1002) == 0)
        #expect(try store.keptBytes(of: 1000, besides: [ids[1], ids[2]]) == 5)
        #expect(try store.bytesByOwner(nil, limit: 9).map(\.owner) == [1001, 1000])
        #expect(try store.bytesByOwner(nil, limit: 1).map(\.bytes) == [24])
        #expect(try store.bytesByOwner(1000, limit: 1).map(\.bytes) == [12])
        try await note(ids[0], done: 3, of: 3, fixture, .succeed)
        #expect(try store.keptBytes(of: 1000) == 10)
        _ = try await store.remove([ids[0], ids[2]], owner: nil, now: 9)
        #expect(try store.keptBytes(of: 1000) == 7)
        _ = try await store.remove([ids[1]], owner: nil, now: 9)
        #expect(try store.keptBytes(of: 1000) == 0)
    }

    @Test("sizes without measure neither stop the store nor make room for other bytes when they go")
    func extremes() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let ids = try await fixture.add(.sample(), .sample(), .sample(), .sample())
        for (id, bytes) in zip(ids, [5, Int64.max, .max, 1 << 62]) {
            try await note(id, done: bytes, fixture, .succeed)
        }
        #expect(try store.keptBytes(of: 1000) == 3 * Schema.countedBytes + 5)
        _ = try await store.remove(Array(ids[1...]), owner: nil, now: 9)
        #expect(try store.keptBytes(of: 1000) == 5)
        #expect(TaskStore.counted(.max) == Schema.countedBytes)
    }

    @Test("what waits for room goes on where it fits, what needs the least first, and what nobody knows when asked to")
    func release() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let ids = try await fixture.add(
            .sample(), .sample(), .sample(), .sample(), .sample(owner: 1001), .sample(), .sample())
        try await note(ids[0], done: 0, of: 60, fixture)
        try await note(ids[1], done: 30, of: 60, fixture)
        try await note(ids[2], done: 50, fixture)
        try await note(ids[3], done: 0, begun: false, fixture)
        try await note(ids[4], done: 1, of: 2, fixture)
        try await note(ids[5], done: 0, of: 10, fixture, .park(.diskFull, until: nil))
        func waiting() throws -> [TaskID] {
            try ids.filter { try store.record($0, owner: nil)?.lifecycle.state == .waiting }
        }
        #expect(try store.ownersOverQuota() == [1000, 1001])
        #expect(try await store.releaseOverQuota(of: 1000, room: 0, all: true) == 0)
        #expect(try await store.releaseOverQuota(of: 1000, room: 29, all: false) == 1)
        #expect(try waiting() == [ids[0], ids[1], ids[2], ids[4], ids[5]])
        #expect(try await store.releaseOverQuota(of: 1000, room: 89, all: false) == 1)
        #expect(try waiting() == [ids[0], ids[2], ids[4], ids[5]])
        #expect(try await store.releaseOverQuota(of: 1000, room: 59, all: true) == 1)
        #expect(try waiting() == [ids[0], ids[4], ids[5]])
        #expect(try await store.releaseOverQuota(of: 1000, room: .max, all: true) == 1)
        #expect(try await store.releaseOverQuota(of: 1000, room: .max, all: true) == 0)
        #expect(try store.ownersOverQuota() == [1001])
    }

    @Test("of many that wait a few go on at a time")
    func many() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add(Array(repeating: .sample(), count: 200), now: 1).map(\.id)
        for id in ids { try await note(id, done: 0, of: 10, fixture) }
        #expect(try await fixture.store.releaseOverQuota(of: 1000, room: 55, all: true) == 5)
        #expect(try await fixture.store.releaseOverQuota(of: 1000, room: .max, all: true) == 64)
    }

    @Test("nothing of it goes through a whole table")
    func plans() throws {
        let fixture = try StoreFixture()
        for (sql, arguments, index) in [
            (OwnerBytesSQL.kept, [1, "[1]"], "SEARCH owner_total USING INTEGER PRIMARY KEY"),
            (OwnerBytesSQL.kept, [1, "[1]"], "SEARCH task USING INTEGER PRIMARY KEY"),
            (OwnerBytesSQL.nextOwner, [-1], "INDEX task_over_quota (owner>?)"),
            (OwnerBytesSQL.waiting, [1, -1, 5, 9], "INDEX task_over_quota (owner=? AND <expr>>? AND <expr><?)"),
        ] as [(String, StatementArguments, String)] {
            let plan = try fixture.store.read { database in
                try database.rows("EXPLAIN QUERY PLAN " + sql, arguments) { try $0.text(3) }.joined(separator: "\n")
            }
            #expect(plan.contains(index) && !plan.contains("TEMP B-TREE"), "\(plan)")
        }
    }
}
