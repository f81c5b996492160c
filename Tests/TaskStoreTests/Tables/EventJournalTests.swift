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
        let events = try fixture.store.events(after: 0, limit: 10).events
        #expect(events.map(\.sequence) == [1, 2, 3])
        #expect(events.map(\.id) == ids)
        #expect(events.map(\.type) == [.added, .added, .added])
        #expect(events.map(\.state) == [.queued, .queued, .paused])
        #expect(events.map(\.reason) == [nil, nil, .user])
        #expect(try fixture.store.events(after: 1, limit: 1).events.map(\.sequence) == [2])
        #expect(try fixture.store.events(after: 0, limit: 10, scope: 1).events.map(\.id) == [ids[0], ids[2]])
        _ = try await fixture.store.remove([ids[0]], owner: nil, now: 2)
        #expect(try fixture.store.events(after: 3, limit: 10, scope: 1).events.map(\.type) == [.removed])
        #expect(try fixture.store.events(after: 4, limit: 10).events.isEmpty)
    }

    @Test("A38: a page passes over a bounded number of events that are not wanted, and tells how far it came")
    func examination() async throws {
        let fixture = try StoreFixture()
        let rows = Int64(TaskStore.examinedRows)
        try await fixture.execute(
            """
            INSERT INTO event (at, type, task_id, owner, state)
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(2 * rows + 5))
            SELECT i, iif(i = \(rows + 1), 'failed', 'started'), 1, 1000 + i % 2, 'active' FROM n
            """)
        func page(_ after: Int64, scope: UInt32? = nil, _ filter: EventFilter) throws -> (Int, Int64) {
            let page = try fixture.store.events(after: after, limit: 256, filter: filter, scope: scope)
            return (page.events.count, page.position)
        }
        let failed = EventFilter(types: [.failed])
        #expect(try page(0, failed) == (0, rows))
        #expect(try page(rows, failed) == (1, 2 * rows))
        #expect(try page(2 * rows, failed) == (0, 2 * rows + 5))
        // Another owner's events are not passed over.
        #expect(try page(0, scope: 1000, failed) == (0, 2 * rows))
        #expect(try page(0, EventFilter(types: [.started])) == (256, 256))
        #expect(try page(0, EventFilter(ids: [TaskID(7)])) == (0, rows))
        #expect(try page(0, EventFilter(states: [.completed])) == (0, rows))
    }

    @Test("a start that a command has overtaken is not recorded")
    func overtakenStart() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add(.sample())[0]
        _ = try await fixture.store.apply(.cancel, to: [id], owner: nil, now: 2)
        try await fixture.store.write([.started(id, at: 1)], isLasting: false, now: 3)
        #expect(try fixture.store.events(after: 0, limit: 10).events.map(\.type) == [.added, .cancelled])
    }

    @Test("an event tells of its task as it is, and once it is removed, as it was last")
    func facts() async throws {
        let fixture = try StoreFixture()
        let task = NewTask.sample("https://example.org/a", owner: 7, key: "k", batch: "b")
        let id = try await fixture.store.add([task], now: 1_000)[0].id
        try await fixture.store.write([.started(id, at: 5)], isLasting: false, now: 6)
        try await fixture.conclude(id, .inState(.paused))
        func told() throws -> [TaskEvent] { try fixture.store.events(after: 0, limit: 10).events }
        let before = try told()
        #expect(before.map(\.type) == [.added, .started, .paused])
        #expect(before.map(\.state) == [.queued, .active, .paused])
        #expect(before.map(\.bytesDone) == [0, 0, 10])
        #expect(before.map(\.at) == [1_000, 5, 9_000])
        _ = try await fixture.store.remove([id], owner: nil, now: 10_000)
        let after = try told()
        #expect(Array(after.prefix(3)) == before)
        #expect(after.last?.type == .removed && after.last?.state == .paused && after.last?.bytesTotal == 20)
        for event in after {
            #expect(event.kind == .download && event.owner == 7 && event.batch == "b" && event.key == "k")
            #expect(event.url == "https://example.org/a")
        }
        try await fixture.execute("DELETE FROM event")
        #expect(try fixture.number("SELECT count(*) FROM removed_task") == 0)
        #expect(try fixture.number("SELECT removed_task_bytes FROM owner_total WHERE owner = 7") == 0)
    }

    @Test("a filter selects by task, batch, owner, state, type and kind, and says how far the journal was read")
    func filters() async throws {
        let fixture = try StoreFixture()
        let tasks = (0..<6).map {
            NewTask.sample("https://example.org/\($0)", owner: $0 % 2 == 0 ? 1 : 2, batch: $0 == 3 ? "b" : nil)
        }
        let ids = try await fixture.store.add(tasks, now: 1_000).map(\.id)
        try await fixture.conclude(ids[3], .inState(.failed))
        func told(_ filter: EventFilter, scope: UInt32? = nil) throws -> [Int64] {
            let page = try fixture.store.events(after: 0, limit: 10, filter: filter, scope: scope)
            #expect(page.position == 8)
            return page.events.map(\.sequence)
        }
        #expect(try told(EventFilter()) == Array(1...8))
        #expect(try told(EventFilter(ids: [ids[1], ids[3]])) == [2, 4, 7])
        #expect(try told(EventFilter(batch: "b")) == [4, 7, 8])
        #expect(try told(EventFilter(owner: 1)) == [1, 3, 5])
        #expect(try told(EventFilter(owner: 1), scope: 1) == [1, 3, 5])
        #expect(try told(EventFilter(owner: 1), scope: 2) == [])
        #expect(try told(EventFilter(states: [.failed])) == [7, 8])
        #expect(try told(EventFilter(types: [.failed])) == [7])
        #expect(try told(EventFilter(states: [.queued], kind: .upload)) == [])
        #expect(try told(EventFilter(batch: "b", kind: .download)) == [4, 7])
        // A page that ends early says where the next one starts.
        var (position, all) = (Int64(0), [] as [Int64])
        while position < 8 {
            let page = try fixture.store.events(after: position, limit: 2, filter: EventFilter(ids: [ids[3]]))
            #expect(page.position > position)
            position = page.position
            all += page.events.map(\.sequence)
        }
        #expect(all == [4, 7])
    }

    @Test("a batch is finished when its last task ends, each time, with the numbers of all its tasks")
    func batches() async throws {
        let fixture = try StoreFixture()
        let tasks = (0..<4).map {
            NewTask.sample("https://example.org/\($0)", owner: 1, batch: $0 < 3 ? "b" : nil)
        }
        let ids = try await fixture.store.add(tasks, now: 1_000).map(\.id)
        func totals(after last: Int64) throws -> [BatchResult?] {
            let events = try fixture.store.events(after: last, limit: 99).events.filter { $0.type == .batchFinished }
            #expect(events.allSatisfy { $0.id == nil && $0.batch == "b" && $0.owner == 1 })
            #expect(events.allSatisfy { $0.state == $0.totals?.outcome && $0.bytesDone == $0.totals?.bytesDone })
            return events.map(\.totals)
        }
        var last: Int64 = 0
        try await fixture.conclude(ids[0], .inState(.completed))
        try await fixture.conclude(ids[3], .inState(.completed))
        _ = try await fixture.store.apply(.cancel, to: [ids[1]], owner: nil, now: 3)
        #expect(try totals(after: last).isEmpty)
        try await fixture.conclude(ids[2], .inState(.failed))
        let first = BatchResult(completed: 1, failed: 1, cancelled: 1, bytesDone: 20)
        #expect(try totals(after: last) == [first] && first.outcome == .failed)
        last = try fixture.store.lastEvent()
        _ = try await fixture.store.apply(.retry, to: [ids[2]], owner: nil, now: 4)
        _ = try await fixture.store.remove([ids[2]], owner: nil, now: 5)
        #expect(try totals(after: last) == [BatchResult(completed: 1, failed: 0, cancelled: 1, bytesDone: 10)])
        last = try fixture.store.lastEvent()
        _ = try await fixture.store.remove([ids[0], ids[1]], owner: nil, now: 6)
        #expect(try totals(after: last).isEmpty, "an ended task that is removed ends nothing")
    }

    @Test("a batch ends after the last of the tasks that are removed together, or not at all where none is left")
    func removals() async throws {
        let fixture = try StoreFixture()
        let tasks = (0..<4).map { NewTask.sample("https://example.org/\($0)", owner: 1, batch: "b") }
        let ids = try await fixture.store.add(tasks, now: 1_000).map(\.id)
        for id in ids[1...] { try await fixture.conclude(id, .inState(.completed)) }
        var last = try fixture.store.lastEvent()
        func types() throws -> [TaskEvent.Kind] { try fixture.store.events(after: last, limit: 99).events.map(\.type) }
        _ = try await fixture.store.remove([ids[0], ids[1]], owner: nil, now: 5)
        #expect(try types() == [.removed, .removed, .batchFinished])
        last = try fixture.store.lastEvent()
        let more = try await fixture.store.add([.sample("https://example.org/5", owner: 1, batch: "b")], now: 6)
        last = try fixture.store.lastEvent()
        _ = try await fixture.store.remove([more[0].id, ids[2], ids[3]], owner: nil, now: 7)
        #expect(try types() == [.removed, .removed, .removed])
    }

    @Test("a time stands for the last event before it")
    func times() async throws {
        let fixture = try StoreFixture()
        for time in [10, 20, 20, 30] as [Milliseconds] { _ = try await fixture.store.add([.sample()], now: time) }
        let numbers = try [0, 10, 11, 20, 30, 31].map { try fixture.store.lastEvent(before: $0) }
        #expect(numbers == [0, 0, 1, 1, 3, 4])
        // Several tasks that are added together share a row, and the oldest rows may be gone.
        _ = try await fixture.store.add([.sample(), .sample(), .sample()], now: 40)
        _ = try await fixture.store.add([.sample()], now: 50)
        try await fixture.store.writes.perform { try $0.run("DELETE FROM event WHERE sequence <= 2") }
        let later = try [0, 30, 31, 40, 41, 50, 51].map { try fixture.store.lastEvent(before: $0) }
        #expect(later == [2, 3, 4, 4, 7, 7, 8])
        try await fixture.store.writes.perform { try $0.run("DELETE FROM event") }
        #expect(try fixture.store.lastEvent(before: 0) == 8)
    }

    @Test("a page is small, though one task with a long URL has all its events")
    func pageBytes() async throws {
        let fixture = try StoreFixture()
        let url = "https://example.org/" + String(repeating: "x", count: 8_000)
        let id = try await fixture.store.add([.sample(url)], now: 1)[0].id
        for time in 0..<50 as Range<Milliseconds> {
            _ = try await fixture.store.apply(.pause, to: [id], owner: nil, now: 2 * time)
            _ = try await fixture.store.apply(.resume, to: [id], owner: nil, now: 2 * time + 1)
        }
        let page = try fixture.store.events(after: 0, limit: 256)
        #expect(page.events.count < 12 && page.position == page.events.last?.sequence)
        var (count, position) = (0, Int64(0))
        while true {
            let page = try fixture.store.events(after: position, limit: 256)
            count += page.events.count
            guard page.position > position else { break }
            position = page.position
        }
        #expect(count == 101)
    }

    @Test("what the journal keeps of removed tasks has a limit, and goes with the oldest events")
    func removedBytes() async throws {
        let fixture = try StoreFixture()
        let long = String(repeating: "x", count: 8_000)
        for _ in 0..<3 {
            let tasks = (0..<100).map { NewTask.sample("https://example.org/\(long)\($0)", owner: 7) }
            _ = try await fixture.store.remove(try await fixture.store.add(tasks, now: 1).map(\.id), owner: nil, now: 2)
        }
        let size = try #require(try fixture.number("SELECT removed_task_bytes FROM owner_total WHERE owner = 7"))
        #expect(size > 300 * 8_000)
        let kept = KeptHistory(since: 0, count: 1_000_000)
        #expect(try await fixture.store.trimEvents(kept) == false)
        var rounds = 0
        while try await fixture.store.trimEvents(kept, removedBytes: 1_000_000), rounds < 20 { rounds += 1 }
        let left = try #require(try fixture.number("SELECT removed_task_bytes FROM owner_total WHERE owner = 7"))
        #expect(left <= 1_000_000)
        #expect(try fixture.store.lastTrimmedEvent(owner: 7) > 0)
    }
}
