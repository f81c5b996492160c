import GRDB
import TaskModel
import Testing

@testable import TaskStore

@Suite("What may start")
struct ReadyTasksTests {
    private func group(_ fixture: StoreFixture, owner: UInt32 = 1000, batch: String? = nil) throws -> Int64 {
        let groups = try fixture.store.readyGroups(of: owner, limit: 100)
        return try #require(groups.first { $0.batch == batch }).id
    }

    private func fingerprint(_ fixture: StoreFixture, _ id: TaskID) throws -> Int64 {
        try #require(try fixture.store.work(for: id)).hostFingerprint
    }

    @Test("a group's tasks come by priority, then by position; only queued ones, without excluded hosts and tasks")
    func order() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            .sample("https://example.org/0", priority: .low), .sample("https://example.org/1"),
            .sample("https://example.org/2", priority: .high), .sample("https://example.org/3"),
            .sample("https://busy.example/4", host: "https://busy.example:443", priority: .now),
            .sample("https://example.org/5", priority: .high, lifecycle: TaskLifecycle(paused: true)),
            .sample("https://example.org/6", batch: "b"))
        let (group, busy) = (try group(fixture), try fingerprint(fixture, ids[4]))
        func ready(_ limit: Int, hosts: Set<Int64> = [], tasks: Set<TaskID> = []) throws -> [TaskID] {
            try fixture.store.readyTasks(of: group, limit: limit, excludingHosts: hosts, excluding: tasks).map(\.id)
        }
        #expect(try ready(10) == [ids[4], ids[2], ids[1], ids[3], ids[0]])
        #expect(try ready(2) == [ids[4], ids[2]])
        #expect(try ready(10, hosts: [busy]) == [ids[2], ids[1], ids[3], ids[0]])
        #expect(try ready(10, hosts: [busy, 5], tasks: [ids[2], ids[3]]) == [ids[1], ids[0]])
        try await fixture.execute("UPDATE task SET position = -1 WHERE id = \(ids[3])")
        #expect(try ready(10) == [ids[4], ids[2], ids[3], ids[1], ids[0]])
    }

    @Test("owners and groups with something to start, in the order of their numbers; others are passed over")
    func groups() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add(
            .sample(owner: 7, batch: "a"), .sample(owner: 7), .sample(owner: 7, batch: "c"),
            .sample(owner: 3, lifecycle: TaskLifecycle(paused: true)), .sample(owner: 0), .sample(owner: .max))
        let store = fixture.store
        #expect(try store.readyOwners(limit: 10) == [0, 7, .max])
        #expect(try store.readyOwners(limit: 2) == [0, 7])
        #expect(try store.readyOwners(after: 0, limit: 10) == [7, .max])
        let groups = try store.readyGroups(of: 7, limit: 10)
        #expect(groups.map(\.batch) == ["a", nil, "c"])
        #expect(try store.readyGroups(of: 7, after: groups[0].id, limit: 1) == [groups[1]])
        try await fixture.conclude(TaskID(1), .inState(.completed))
        #expect(try store.readyGroups(of: 7, limit: 10).map(\.batch) == [nil, "c"])
        #expect(try store.readyGroups(of: 3, limit: 10).isEmpty)
    }

    @Test("behind thousands of tasks of excluded hosts those of others are found, each host's first ones first")
    func behind() async throws {
        let fixture = try StoreFixture()
        for _ in 0..<3 {
            _ = try await fixture.store.add(
                Array(repeating: .sample(host: "http://full:80"), count: 2_000)
                    + Array(repeating: .sample(host: "http://hung:80"), count: 1_000), now: 1)
        }
        let others = try await fixture.store.add(
            (0..<40).map { .sample("http://h\($0 % 20)/\($0)", host: "http://h\($0 % 20):80") }, now: 1
        ).map(\.id)
        let excluded: Set<Int64> = [try fingerprint(fixture, TaskID(1)), try fingerprint(fixture, TaskID(2_001))]
        let found = try fixture.store.readyTasks(of: try group(fixture), limit: 64, excludingHosts: excluded)
        #expect(found.map(\.id) == others)
        // The limit of 20 equals the number of other hosts; two tasks of each would exceed it.
        let few = try fixture.store.readyTasks(of: try group(fixture), limit: 20, excludingHosts: excluded)
        #expect(few.map(\.id) == Array(others.prefix(20)))
    }

    @Test("no reading goes through the whole table or sorts")
    func plans() throws {
        let fixture = try StoreFixture()
        for (sql, arguments, index) in [
            (ReadySQL.owners, [1], "fair_share_group_ready (owner>?)"),
            (ReadySQL.groups, [1, 2, 3], "fair_share_group_ready (owner=? AND id>?)"),
            (ReadySQL.inOrder, [1, 2, "[]", "[]", 3], "COVERING INDEX task_ready (group_id=?)"),
            (ReadySQL.hosts, [1, 2], "COVERING INDEX task_host (group_id=? AND host_fingerprint>?)"),
            (ReadySQL.ofHost, [1, 2, "[]", 3], "COVERING INDEX task_host (group_id=? AND host_fingerprint=?)"),
        ] as [(String, StatementArguments, String)] {
            let plan = try fixture.store.read { database in
                try database.rows("EXPLAIN QUERY PLAN " + sql, arguments) { try $0.text(3) }.joined(separator: "\n")
            }
            #expect(plan.contains(index) && !plan.contains("TEMP B-TREE"), "\(plan)")
        }
    }
}
