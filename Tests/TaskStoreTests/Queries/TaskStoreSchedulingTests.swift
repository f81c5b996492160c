import GRDB
import TaskModel
import Testing

@testable import TaskStore

@Suite("What the scheduler reads")
struct TaskStoreSchedulingTests {
    @Test("waiting tasks are released when their time has come, and not before")
    func release() async throws {
        let fixture = try StoreFixture()
        #expect(try fixture.store.nextWake() == nil)
        var ids: [TaskID] = []
        for until in [Milliseconds(3_000), 2_000, 4_000] {
            ids.append(try await fixture.add("https://example.org/a"))
            try await fixture.conclude(ids[ids.count - 1], .inState(.waiting, until: until))
        }
        // A task that waits for the network instead of a time.
        let network = try await fixture.add(inState: .waiting)
        #expect(try fixture.store.nextWake() == 2_000)
        #expect(try await fixture.store.releaseDue(now: 1_999) == 0)
        #expect(try await fixture.store.releaseDue(now: 3_000) == 2)
        #expect(try fixture.states(ids + [network]) == [.queued, .queued, .waiting, .waiting])
        #expect(try fixture.store.nextWake() == 4_000)
        #expect(try await fixture.store.releaseDue(now: .max) == 1)
        #expect(try fixture.store.nextWake() == nil)
        #expect(try fixture.states([network]) == [.waiting])
    }

    @Test("more due tasks than one commit takes are all released")
    func releaseMany() async throws {
        let fixture = try StoreFixture()
        let lifecycle = TaskLifecycle(startAt: 2_000, now: 1_000)
        for _ in 0..<3 {
            _ = try await fixture.store.add(Array(repeating: .sample(lifecycle: lifecycle), count: 4_000), now: 1_000)
        }
        #expect(try await fixture.store.releaseDue(now: 2_000) == 12_000)
        #expect(try fixture.store.counts(owner: nil) == [.queued: 12_000])
    }

    @Test("what waits for the network is released by its sign, and nothing else is")
    func releaseByReason() async throws {
        let fixture = try StoreFixture()
        var ids: [TaskID] = []
        for reason in [TaskReason.network, .retry, .network, .diskFull] {
            ids.append(try await fixture.add("https://example.org/a"))
            var lifecycle = TaskLifecycle()
            try lifecycle.apply(.start)
            try lifecycle.apply(.park(reason, until: 5_000))
            try await fixture.conclude(ids[ids.count - 1], lifecycle)
        }
        #expect(try await fixture.store.release(waitingFor: .network) == 2)
        #expect(try fixture.states(ids) == [.queued, .waiting, .queued, .waiting])
        #expect(try await fixture.store.release(waitingFor: .network) == 0)
    }

    @Test("F25: a clock that was set moves the ends of waits with it, not the hours that a person named")
    func shift() async throws {
        let fixture = try StoreFixture()
        let scheduled = try await fixture.add("https://example.org/a", lifecycle: TaskLifecycle(startAt: 9_000, now: 1))
        let retry = try await fixture.add("https://example.org/a")
        try await fixture.conclude(retry, .inState(.waiting, until: 6_000))
        func ends() throws -> [Milliseconds?] {
            try [scheduled, retry].map { try fixture.store.record($0, owner: nil)?.lifecycle.notBefore }
        }
        try await fixture.store.shiftWaits(by: -4_000, latest: 99_000, latestAsked: 99_000)
        #expect(try ends() == [9_000, 2_000])
        try await fixture.store.shiftWaits(by: 86_400_000, latest: 50_000_000, latestAsked: 70_000_000)
        #expect(try ends() == [9_000, 50_000_000])
        // A time that a server may have requested can be later.
        try await fixture.execute("UPDATE task SET http_status = 503, not_before = 6000 WHERE id = \(retry)")
        try await fixture.store.shiftWaits(by: 86_400_000, latest: 50_000_000, latestAsked: 70_000_000)
        #expect(try ends() == [9_000, 70_000_000])
    }

    @Test("work for a task is its record, its secrets and its resume data; nothing for an unknown one")
    func work() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add(.sample().with(secretURL: "https://u:p@example.org/a"))[0]
        let work = try #require(try fixture.store.work(for: id))
        #expect(work.record == (try fixture.store.record(id, owner: nil)))
        #expect(work.secrets.url == "https://u:p@example.org/a")
        #expect(work.resumeData == nil)
        #expect(try fixture.store.work(for: TaskID(99)) == nil)
    }

    @Test("no query of the scheduler reads the whole table or sorts")
    func plans() async throws {
        let fixture = try StoreFixture()
        func plan(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> String {
            try fixture.store.read { database in
                try database.rows("EXPLAIN QUERY PLAN " + sql, arguments) { try $0.text(3) }.joined(separator: "\n")
            }
        }
        let wake = try plan(SchedulingSQL.nextWake)
        #expect(wake.contains("task_waiting (not_before>?)"), "\(wake)")
        let due = try plan(SchedulingSQL.releaseDue, [5, 10])
        #expect(due.contains("task_waiting (not_before>? AND not_before<?)") && !due.contains("TEMP B-TREE"), "\(due)")
    }
}
