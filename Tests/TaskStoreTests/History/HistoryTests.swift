import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("What is kept of the past")
struct HistoryTests {
    /// Adds tasks that ended at these times, in this order.
    private func add(
        _ fixture: StoreFixture, owner: UInt32 = 1000, endedAt times: [Milliseconds]
    ) async throws -> [TaskID] {
        var ids: [TaskID] = []
        for time in times {
            let id = try #require(try await fixture.add(.sample(owner: owner)).first)
            let conclusion = TaskConclusion(
                lifecycle: try .inState(.completed), attempts: 1, failures: 0, finishedAt: time)
            _ = try await fixture.store.write(
                [.concluded(id, TaskProgress(bytesDone: 1, bytesTotal: 1, bytesFetched: 1), conclusion)], now: time)
            ids.append(id)
        }
        return ids
    }

    @Test("tasks that ended too long ago go, the oldest end first; those that have not ended stay")
    func age() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add("https://example.org/open")
        let ids = try await add(fixture, endedAt: [300, 100, 200, 400])
        func expired(since: Milliseconds, limit: Int = 10) throws -> [TaskID] {
            try fixture.store.expired(KeptHistory(since: since, count: 100), limit: limit)
        }
        #expect(try expired(since: 100) == [])
        #expect(try expired(since: 301) == [ids[1], ids[2], ids[0]])
        #expect(try expired(since: 301, limit: 2) == [ids[1], ids[2]])
        #expect(try fixture.store.firstEnd() == 100)
    }

    @Test("of too many that ended those go that ended first")
    func count() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add("https://example.org/open")
        let ids = try await add(fixture, endedAt: [300, 100, 200, 400])
        func expired(count: Int, limit: Int = 10) throws -> [TaskID] {
            try fixture.store.expired(KeptHistory(since: 0, count: count), limit: limit)
        }
        #expect(try expired(count: 4) == [])
        #expect(try expired(count: 2) == [ids[1], ids[2]])
        #expect(try expired(count: 0) == [ids[1], ids[2], ids[0], ids[3]])
        #expect(try expired(count: 0, limit: 1) == [ids[1]])
    }

    private func trim(_ fixture: StoreFixture, _ kept: KeptHistory) async throws {
        while try await fixture.store.trimEvents(kept) {}
    }

    @Test("events that are too many go, the oldest first, and numbers go on")
    func eventCount() async throws {
        let fixture = try StoreFixture()
        for _ in 0..<10 { _ = try await fixture.add("https://example.org/a") }
        try await trim(fixture, KeptHistory(since: 0, count: 10))
        #expect(try fixture.store.oldestEvent() == 1)
        try await trim(fixture, KeptHistory(since: 0, count: 3))
        #expect(try fixture.store.events(after: 0, limit: 100).events.map(\.sequence) == [8, 9, 10])
        try await trim(fixture, KeptHistory(since: 0, count: 0))
        #expect(try fixture.store.oldestEvent() == nil && fixture.store.lastEvent() == 10)
        _ = try await fixture.add("https://example.org/a")
        #expect(try fixture.store.lastEvent() == 11)
    }

    @Test("events that are too old go; what is told of many tasks at once goes as a whole")
    func eventAge() async throws {
        let fixture = try StoreFixture()
        for now in [100, 200, 300] as [Milliseconds] {
            _ = try await fixture.store.add(Array(repeating: .sample(), count: 50), now: now)
        }
        try await trim(fixture, KeptHistory(since: 200, count: 1_000))
        #expect(try fixture.store.oldestEvent() == 51)
        // The last ones of the next fifty must be kept.
        try await trim(fixture, KeptHistory(since: 200, count: 60))
        #expect(try fixture.store.oldestEvent() == 51)
        try await trim(fixture, KeptHistory(since: 301, count: 1_000))
        #expect(try fixture.store.oldestEvent() == nil)
    }

    @Test("one owner's many take nothing from another's few, and what stands in one's way is not in the other's")
    func owners() async throws {
        let fixture = try StoreFixture()
        let many = try await add(fixture, owner: 1, endedAt: [100, 200, 300, 400, 500, 600])
        let few = try await add(fixture, owner: 2, endedAt: [10, 20])
        func expired(since: Milliseconds = 0, count: Int, limit: Int = 10) throws -> [TaskID] {
            try fixture.store.expired(KeptHistory(since: since, count: count), limit: limit)
        }
        #expect(try expired(count: 2) == Array(many[..<4]))
        #expect(try expired(count: 1) == Array(many[..<5]) + [few[0]])
        #expect(try expired(count: 1, limit: 2) == [many[0], few[0]])
        #expect(try expired(since: 250, count: 5) == [many[0], many[1], few[0], few[1]])
        #expect(try fixture.store.firstEnd() == 10)
    }

    @Test("all owners together have four times what one may, and whoever has little keeps it")
    func together() async throws {
        let fixture = try StoreFixture()
        for owner in UInt32(1)...5 { _ = try await add(fixture, owner: owner, endedAt: [100, 200, 300]) }
        let own = try await add(fixture, owner: 6, endedAt: [1])
        let ids = try fixture.store.expired(KeptHistory(since: 0, count: 3), limit: 100)
        // The total is 12: one of the last owner, and two of each of the others.
        #expect(ids.count == 5 && !ids.contains(own[0]))
    }

    @Test("one owner's events push out no other's, and whoever listens hears of a gap in what is his alone")
    func eventsOfOwners() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        _ = try await fixture.add(.sample(owner: 2))
        for _ in 0..<5 { _ = try await fixture.add(.sample(owner: 1)) }
        _ = try await store.add(Array(repeating: .sample(owner: 3), count: 50), now: 1_000)
        _ = try await fixture.add(.sample(owner: 2))
        try await trim(fixture, KeptHistory(since: 0, count: 3))
        #expect(try store.events(after: 0, limit: 100, scope: 1).events.map(\.sequence) == [4, 5, 6])
        #expect(try store.events(after: 0, limit: 100, scope: 2).events.map(\.sequence) == [1, 57])
        #expect(
            try store.events(after: 0, limit: 100, scope: 3).events.count == 50, "what is told at once goes as a whole")
        #expect(try store.lastTrimmedEvent(owner: 1) == 3)
        #expect(try store.lastTrimmedEvent(owner: 2) == 0 && store.lastTrimmedEvent(owner: nil) == 3)
        try await trim(fixture, KeptHistory(since: 1_001, count: 3))
        #expect(try store.oldestEvent() == nil && store.lastTrimmedEvent(owner: 2) == 57)
    }

    @Test("the entries of queue files that one owner completed push out no other's")
    func pastEntries() async throws {
        let fixture = try StoreFixture()
        for (owner, count) in [(UInt32(1), 5), (2, 1)] {
            for number in 0..<count {
                let id = try #require(
                    try await fixture.add(.sample("https://example.org/\(number)", owner: owner, batch: "b")).first)
                try await fixture.conclude(id, .inState(.completed))
                _ = try await fixture.store.remove([id], owner: nil, keepsEntries: true, now: 1)
            }
        }
        while try await fixture.store.trimPastEntries(limit: 3) {}
        let kept = try fixture.store.read { database in
            try database.rows("SELECT owner, url FROM past_entry ORDER BY id") { row in
                "\(try row.owner(0)) \(try row.text(1))"
            }
        }
        let urls = (2...4).map { "1 https://example.org/\($0)" }
        #expect(kept == urls + ["2 https://example.org/0"])
    }

    @Test("A31: what is known of past entries takes up a quarter of what records may at most, the oldest go first")
    func pastBytes() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        func complete(_ count: Int, quota: Quota = Quota(), owner: UInt32 = 1) async throws {
            let url = "https://example.org/" + String(repeating: "a", count: 1_000)
            let ids = try await store.add(
                (0..<count).map { .sample(url, owner: owner, batch: "b", output: "\($0)") }, now: 1
            ).map(\.id)
            for id in ids { try await fixture.conclude(id, .inState(.completed)) }
            _ = try await store.remove(ids, owner: nil, keepsEntries: true, quota: quota, now: 2)
        }
        func kept(_ owner: UInt32 = 1) throws -> (outputs: [String], bytes: Int64) {
            try store.read { database in
                let outputs = try database.rows("SELECT output FROM past_entry WHERE owner = ? ORDER BY id", [owner]) {
                    try $0.text(0)
                }
                return (outputs, try database.pastEntryBytes(of: owner))
            }
        }
        let quota = Quota(recordsPerOwner: 16_000)
        try await complete(9, quota: quota)
        #expect(try kept().outputs == ["6", "7", "8"] && kept().bytes == 3 * 1_022)
        // Entries from before the limit are trimmed when the owner adds more, or by an explicit trim.
        try await complete(5)
        #expect(try kept().outputs.count == 8)
        try await complete(1, quota: quota)
        #expect(try kept().outputs.count == 7)
        try await complete(4, owner: 2)
        while try await store.trimPastEntries(quota: quota) {}
        #expect(try kept().outputs == ["3", "4", "0"] && kept(2).outputs == ["1", "2", "3"])
        try await store.forgetPastEntries(batch: "b", owner: nil)
        #expect(try kept().bytes == 0 && kept(2).bytes == 0)
    }

    @Test("nothing of it goes through a whole table or sorts")
    func plans() throws {
        let fixture = try StoreFixture()
        for (sql, arguments, index) in [
            (HistorySQL.endedByOwner, [], "fair_share_group USING INDEX fair_share_group_owner"),
            (HistorySQL.firstEnd, [1], "COVERING INDEX task_ended (owner=?"),
            (HistorySQL.ended, [1, 2], "COVERING INDEX task_ended (owner=?"),
            (HistorySQL.events, [1, 2], "INDEX event_owner (owner=?)"),
            (HistorySQL.dropEvents, [1, 2], "INDEX event_owner (owner=? AND sequence<?)"),
            (HistorySQL.dropPastEntries, [1, 2], "COVERING INDEX past_entry_owner (owner=?)"),
        ] as [(String, StatementArguments, String)] {
            let plan = try fixture.store.read { database in
                try database.rows("EXPLAIN QUERY PLAN " + sql, arguments) { try $0.text(3) }.joined(separator: "\n")
            }
            #expect(plan.contains(index) && !plan.contains("TEMP B-TREE"), "\(plan)")
        }
    }

    @Test("a filter finds tasks by the time of their end, or of their coming where they have none")
    func filter() async throws {
        let fixture = try StoreFixture()
        let open = try await fixture.add("https://example.org/open")
        let ids = try await add(fixture, endedAt: [5_000, 6_000])
        func found(_ since: Milliseconds?, _ until: Milliseconds?) throws -> [TaskID] {
            try fixture.store.ids(
                matching: TaskFilter(since: since, until: until), owner: nil, running: [], after: nil, limit: 10)
        }
        #expect(try found(nil, nil) == [open] + ids)
        #expect(try found(1_001, nil) == ids)
        #expect(try found(nil, 6_000) == [open, ids[0]])
        #expect(try found(5_000, 5_001) == [ids[0]])
    }
}
