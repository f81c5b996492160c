import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("What is kept of the past")
struct HistoryTests {
    /// Tasks that ended at these times, in this order.
    private func add(_ fixture: StoreFixture, endedAt times: [Milliseconds]) async throws -> [TaskID] {
        var ids: [TaskID] = []
        for time in times {
            let id = try await fixture.add("https://example.org/a")
            let conclusion = TaskConclusion(
                standing: try .inState(.completed), attempts: 1, failures: 0, finishedAt: time)
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
        #expect(try fixture.store.events(after: 0, limit: 100).map(\.sequence) == [8, 9, 10])
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
        // Of the next fifty, the last ones are to be kept.
        try await trim(fixture, KeptHistory(since: 200, count: 60))
        #expect(try fixture.store.oldestEvent() == 51)
        try await trim(fixture, KeptHistory(since: 301, count: 1_000))
        #expect(try fixture.store.oldestEvent() == nil)
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
