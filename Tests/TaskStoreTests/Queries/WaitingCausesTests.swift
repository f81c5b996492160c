import GRDB
import TaskModel
import Testing

@testable import TaskStore

@Suite("Why tasks wait")
struct WaitingCausesTests {
    private static func waiting(_ reason: TaskReason, until: Milliseconds?) throws -> TaskLifecycle {
        try #require(TaskLifecycle(state: .waiting, reason: reason, notBefore: until))
    }

    @Test("tasks that wait alike are counted together, the most frequent cause first, with the soonest try")
    func grouped() async throws {
        let fixture = try StoreFixture()
        for (until, message) in [(90, "a"), (70, "a"), (80, "b")] as [(Milliseconds, String)] {
            let id = try await fixture.add("http://h/\(until)")
            try await fixture.conclude(
                id, try Self.waiting(.retry, until: until), error: TaskFailure(code: .connect, message: message))
        }
        let full = try await fixture.add("http://h/full")
        try await fixture.conclude(
            full, try Self.waiting(.diskFull, until: 50), error: TaskFailure(code: .diskFull, message: "no room"))
        _ = try await fixture.add(inState: .completed)
        _ = try await fixture.add(inState: .failed)
        let causes = try fixture.store.waitingCauses(owner: nil)
        #expect(
            causes
                == WaitingCauses(
                    counted: 4,
                    causes: [
                        WaitingCause(reason: "retry", code: .connect, tasks: 3, notBefore: 70),
                        WaitingCause(reason: "disk-full", code: .diskFull, message: "no room", tasks: 1, notBefore: 50),
                    ]))
        #expect(try fixture.store.waitingCauses(owner: 4_711) == WaitingCauses())
    }

    @Test("no more than so many tasks are looked at, however many wait, and those that are tried first among them")
    func bounded() async throws {
        let fixture = try StoreFixture()
        let lifecycle = try Self.waiting(.scheduled, until: 9_000)
        let tasks = (0..<WaitingCauses.limit).map { NewTask.sample("http://h/\($0)", lifecycle: lifecycle) }
        _ = try await fixture.store.add(tasks, now: 1)
        let last = try await fixture.add("http://h/last")
        try await fixture.conclude(
            last, try Self.waiting(.retry, until: 5), error: TaskFailure(code: .dns, message: "m"))
        let causes = try fixture.store.waitingCauses(owner: nil)
        #expect(causes.counted <= WaitingCauses.limit && causes.counted > WaitingCauses.limit / 2 - 1)
        #expect(causes.causes.map(\.reason) == ["scheduled", "retry"])
        #expect(causes.causes.last == WaitingCause(reason: "retry", code: .dns, message: "m", tasks: 1, notBefore: 5))
    }

    @Test("a group of many waiting tasks does not hide the cause of another group")
    func groups() async throws {
        let fixture = try StoreFixture()
        let lifecycle = try Self.waiting(.dependency, until: nil)
        let tasks = (0..<WaitingCauses.limit).map { NewTask.sample("http://h/\($0)", lifecycle: lifecycle) }
        _ = try await fixture.store.add(tasks, now: 1)
        let other = try #require(try await fixture.add(.sample("http://h/other", batch: "b")).first)
        try await fixture.conclude(
            other, try Self.waiting(.network, until: nil), error: TaskFailure(code: .dns, message: "m"))
        let causes = try fixture.store.waitingCauses(owner: nil)
        #expect(causes.causes.map(\.reason) == ["dependency", "network"])
        #expect(causes.counted <= WaitingCauses.limit)
    }

    @Test("the tasks to look at are found by index, and none is gone through that does not wait")
    func plan() async throws {
        let fixture = try StoreFixture()
        let plan = try fixture.store.read { database in
            try database.rows("EXPLAIN QUERY PLAN " + WaitingCauses.query, [nil, 2, 1]) { try $0.text(3) }
        }
        #expect(plan.contains { $0.contains("task_state (group_id=? AND state=?)") }, "\(plan)")
        #expect(plan.contains { $0.contains("task_waiting (not_before>?)") }, "\(plan)")
        #expect(!plan.contains { $0 == "SCAN task" }, "\(plan)")
    }
}
