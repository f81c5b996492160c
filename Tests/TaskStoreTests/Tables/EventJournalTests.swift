import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("The journal")
struct EventJournalTests {
    @Test("numbers grow, also after the store was opened again and the journal emptied")
    func sequence() async throws {
        let directory = try TemporaryDirectory()
        let first = try TaskStore(directory: directory.path)
        #expect(try first.lastEvent() == 0)
        #expect(try first.oldestEvent() == nil)
        _ = try await first.add([.sample(), .sample()], now: 1)
        #expect(try first.lastEvent() == 2)
        try await first.writes.perform { try $0.run("DELETE FROM event") }
        try first.close()

        let second = try StoreFixture(in: directory)
        #expect(try second.store.lastEvent() == 2)
        #expect(try second.store.oldestEvent() == nil)
        _ = try await second.add("https://example.org/a")
        #expect(try second.store.lastEvent() == 3)
        #expect(try second.store.oldestEvent() == 3)
        try second.store.close()
    }

    @Test("events come in order after a number, as many as asked for, and of one owner where asked")
    func reading() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            .sample(owner: 1), .sample(owner: 2), .sample(owner: 1, lifecycle: TaskLifecycle(paused: true)))
        let events = try fixture.store.events(after: 0, limit: 10)
        #expect(events.map(\.sequence) == [1, 2, 3])
        #expect(events.map(\.id) == ids)
        #expect(events.map(\.type) == [.added, .added, .added])
        #expect(events.map(\.state) == [.queued, .queued, .paused])
        #expect(events.map(\.reason) == [nil, nil, .user])
        #expect(try fixture.store.events(after: 1, limit: 1).map(\.sequence) == [2])
        #expect(try fixture.store.events(after: 0, limit: 10, owner: 1).map(\.id) == [ids[0], ids[2]])
        _ = try await fixture.store.remove([ids[0]], owner: nil, now: 2)
        #expect(try fixture.store.events(after: 3, limit: 10, owner: 1).map(\.type) == [.removed])
        #expect(try fixture.store.events(after: 4, limit: 10).isEmpty)
    }
}
