import TaskModel
import Testing

@testable import TaskStore

@Suite("Pages, counts and batches")
struct TaskStoreQueriesTests {
    private func page(
        _ fixture: StoreFixture, _ filter: TaskFilter = TaskFilter(), owner: UInt32? = nil, after: TaskID? = nil,
        limit: Int = 100, newest: Int? = nil, running: Set<TaskID> = []
    ) throws -> [TaskID] {
        let query = PageQuery(
            filter: filter, owner: owner, after: after, limit: limit, newest: newest, running: running)
        let ids = try fixture.store.page(query).map(\.id)
        if newest == nil {
            // The equivalent query for ids.
            let same = try fixture.store.ids(
                matching: filter, owner: owner, running: running, after: after, limit: limit)
            #expect(same == ids)
        }
        return ids
    }

    @Test("pages go on after an id, oldest first; the newest so many begin further on")
    func paging() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add((0..<10).map { .sample("https://example.org/\($0)") }, now: 1).map(\.id)
        #expect(try page(fixture) == ids)
        #expect(try page(fixture, limit: 3) == Array(ids[0..<3]))
        #expect(try page(fixture, after: ids[2], limit: 3) == Array(ids[3..<6]))
        #expect(try page(fixture, newest: 4) == Array(ids[6...]))
        #expect(try page(fixture, limit: 2, newest: 4) == Array(ids[6..<8]))
        #expect(try page(fixture, after: ids[7], newest: 4) == Array(ids[8...]))
        #expect(try page(fixture, newest: 99) == ids)
        #expect(try page(fixture, newest: 0) == [])
        #expect(try page(fixture, after: ids[9]) == [])
    }

    @Test("the newest so many are those that match")
    func newestMatching() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add(
            (0..<10).map { .sample(batch: $0 % 2 == 0 ? "even" : nil) }, now: 1
        ).map(\.id)
        #expect(try page(fixture, TaskFilter(batch: "even"), newest: 2) == [ids[6], ids[8]])
    }

    @Test("filters by state, batch and owner; every condition holds")
    func filters() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            .sample(owner: 1, batch: "a"), .sample(owner: 2, batch: "a"), .sample(owner: 1, batch: "b"),
            .sample(owner: 1, batch: "a", lifecycle: TaskLifecycle(paused: true)))
        #expect(try page(fixture, TaskFilter(batch: "a")) == [ids[0], ids[1], ids[3]])
        #expect(try page(fixture, TaskFilter(states: [.paused])) == [ids[3]])
        #expect(try page(fixture, TaskFilter(states: [])) == ids)
        #expect(try page(fixture, TaskFilter(states: [.paused, .queued], batch: "a"), owner: 1) == [ids[0], ids[3]])
        #expect(try page(fixture, TaskFilter(owner: 2)) == [ids[1]])
        #expect(try page(fixture, TaskFilter(owner: 2), owner: 1) == [])
        #expect(try page(fixture, TaskFilter(states: [.failed])) == [])
    }

    @Test("a running task is active as long as it is stored as queued; what it has come to counts at once")
    func running() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            .sample(), .sample(), .sample(lifecycle: TaskLifecycle(paused: true)), .sample())
        let running: Set<TaskID> = [ids[1], ids[2]]
        #expect(try page(fixture, TaskFilter(states: [.active]), running: running) == [ids[1]])
        #expect(try page(fixture, TaskFilter(states: [.queued]), running: running) == [ids[0], ids[3]])
        #expect(try page(fixture, TaskFilter(states: [.paused]), running: running) == [ids[2]])
        #expect(
            try page(fixture, TaskFilter(states: [.queued, .active]), running: running) == [ids[0], ids[1], ids[3]])
        #expect(try page(fixture, TaskFilter(states: [.active, .paused]), running: [ids[0]]) == [ids[0], ids[2]])
        #expect(try page(fixture, TaskFilter(states: [.active])) == [])
        #expect(try page(fixture, running: running) == ids)
    }

    @Test("there is no limit on the number of running tasks")
    func manyRunning() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let running = Set((0..<100_000).map { TaskID(Int64($0) + 1_000) })
        #expect(try page(fixture, TaskFilter(states: [.queued]), running: running) == [id])
    }

    @Test("search finds part of URL or path, in any letter case, and takes wildcards as they stand")
    func search() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            .sample("https://example.org/Debian.iso"), .sample("https://example.org/100%25_x"),
            .sample("https://example.org/b", path: "/srv/Übung_1.pdf"), .sample("https://example.org/a\\b"))
        func search(_ text: String) throws -> [TaskID] { try page(fixture, TaskFilter(search: text)) }
        #expect(try search("dEBIAN") == [ids[0]])
        #expect(try search("0%2") == [ids[1]])
        #expect(try search("1%2") == [])
        #expect(try search("_") == [ids[1], ids[2]])
        #expect(try search("g_1.PDF") == [ids[2]])
        #expect(try search("übung_") == [ids[2]])
        #expect(try search("übung%1") == [])
        #expect(try search("a\\b") == [ids[3]])
        #expect(try search("' OR 1 --") == [])
        #expect(try search("") == ids)
    }

    @Test("A38: a search whose text almost fits everywhere compares each text once")
    func costlySearch() async throws {
        let fixture = try StoreFixture()
        let url = "https://example.org/" + String(repeating: "q", count: 2_000)
        _ = try await fixture.store.add((0..<1_000).map { .sample(url, key: "\($0)") }, now: 1)
        let text = String(repeating: "q", count: 1_000) + "z"
        // By `LIKE` it took a hundred times as long.
        let began = ContinuousClock.now
        #expect(try page(fixture, TaskFilter(search: text)) == [])
        #expect(ContinuousClock.now - began < .seconds(2))
    }

    @Test("batches come in pages by name, each with its own numbers")
    func pagesOfBatches() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.store.add((0..<10).map { .sample(owner: 1, batch: "b\($0)") }, now: 1)
        _ = try await fixture.store.add([.sample(owner: 2, batch: "b3"), .sample(owner: 2, batch: "c")], now: 1)
        func names(_ owner: UInt32?, after name: String?, _ limit: Int) throws -> [String] {
            try fixture.store.batches(owner: owner, after: name, limit: limit).map(\.batch)
        }
        #expect(try names(nil, after: nil, 3) == ["b0", "b1", "b2"])
        #expect(try names(nil, after: "b8", 3) == ["b9", "c"])
        #expect(try names(1, after: "b8", 3) == ["b9"])
        #expect(try names(2, after: nil, 3) == ["b3", "c"])
        #expect(try names(2, after: "c", 3) == [])
        #expect(try fixture.store.batches(owner: nil, after: "b2", limit: 1).first?.counts == [.queued: 2])
    }

    @Test("a record of another owner is not there")
    func visibility() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add(.sample(owner: 1))[0]
        #expect(try fixture.store.record(id, owner: 1)?.id == id)
        #expect(try fixture.store.record(id, owner: nil)?.id == id)
        #expect(try fixture.store.record(id, owner: 2) == nil)
        #expect(try fixture.store.record(TaskID(99), owner: nil) == nil)
    }

    @Test("records of more tasks than are read at once come in the order asked, and none of another user")
    func manyRecords() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add((0..<300).map { .sample(owner: $0 % 2 == 0 ? 1 : 2) }, now: 1).map(\.id)
        let asked = [TaskID(999)] + ids.reversed()
        var all: [TaskID] = []
        try fixture.store.forEachRecord(of: asked, owner: nil) { all.append($0.id) }
        #expect(all == ids.reversed())
        var own: [TaskID] = []
        try fixture.store.forEachRecord(of: asked, owner: 1) { own.append($0.id) }
        #expect(own == ids.enumerated().filter { $0.offset % 2 == 0 }.map(\.element).reversed())
    }

    @Test("counts by state, and by batch and state, for everyone or one owner")
    func counts() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add(
            .sample(owner: 1, batch: "b"), .sample(owner: 2, batch: "a"), .sample(owner: 1, batch: "a"),
            .sample(owner: 1, batch: "a", lifecycle: TaskLifecycle(paused: true)), .sample(owner: 1))
        #expect(try fixture.store.counts(owner: nil) == [.queued: 4, .paused: 1])
        #expect(try fixture.store.counts(owner: 1) == [.queued: 3, .paused: 1])
        #expect(try fixture.store.counts(owner: 9) == [:])
        #expect(
            try fixture.store.batches(owner: nil) == [
                BatchTotals(batch: "a", counts: [.queued: 2, .paused: 1], bytesDone: 0, bytesTotal: nil),
                BatchTotals(batch: "b", counts: [.queued: 1], bytesDone: 0, bytesTotal: nil),
            ])
        #expect(
            try fixture.store.batches(owner: 2) == [
                BatchTotals(batch: "a", counts: [.queued: 1], bytesDone: 0, bytesTotal: nil)
            ])
    }

    @Test("where groups are many, pages are the same")
    func manyGroups() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add(
            (0..<150).map { .sample("https://example.org/\($0)", owner: 1 + UInt32($0 % 2), batch: "b\($0 % 75)") },
            now: 1
        ).map(\.id)
        #expect(try page(fixture, limit: 200) == ids)
        #expect(try page(fixture, after: ids[9], limit: 5) == Array(ids[10..<15]))
        #expect(try page(fixture, newest: 3) == Array(ids.suffix(3)))
        #expect(try page(fixture, owner: 2, limit: 200) == ids.enumerated().filter { $0.0 % 2 == 1 }.map(\.1))
        #expect(
            try page(fixture, TaskFilter(states: [.active]), limit: 200, running: [ids[3], ids[80]]) == [
                ids[3], ids[80],
            ])
        #expect(try page(fixture, TaskFilter(batch: "b7"), running: [ids[7]]) == [ids[7], ids[82]])
        #expect(try page(fixture, TaskFilter(states: [.queued], batch: "b7"), running: [ids[7]]) == [ids[82]])
        #expect(try page(fixture, TaskFilter(search: "/14"), limit: 200) == [ids[14]] + ids[140...149])
    }
}
