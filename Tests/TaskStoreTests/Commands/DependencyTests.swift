import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Tasks that follow others")
struct DependencyTests {
    private func follower(of id: TaskID, paused: Bool = false, startAt: Milliseconds? = nil) -> NewTask {
        var task = NewTask.sample(
            lifecycle: TaskLifecycle(paused: paused, follows: true, startAt: startAt, now: 1_000))
        task.specification.afterTask = id
        task.specification.startAt = startAt
        return task
    }

    private func lifecycle(_ id: TaskID, in fixture: StoreFixture) throws -> TaskLifecycle? {
        try fixture.store.record(id, owner: nil)?.lifecycle
    }

    @Test("one becomes ready when the other has completed, or waits for its hour then")
    func completes() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let ids = try await fixture.add(follower(of: first), follower(of: first, startAt: 50_000))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 0)
        #expect(try fixture.states(ids) == [.waiting, .waiting])
        try await fixture.conclude(first, .inState(.completed))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 2)
        #expect(try lifecycle(ids[0], in: fixture) == TaskLifecycle())
        #expect(try lifecycle(ids[1], in: fixture) == TaskLifecycle(startAt: 50_000, now: 9_000))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 0)
    }

    @Test("the write of a result tells whether others depend on it")
    func toldByWrite() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let second = try await fixture.add("https://example.org/b")
        _ = try await fixture.add(follower(of: first))
        let conclusion = TaskConclusion(
            lifecycle: try .inState(.completed), attempts: 1, failures: 0, finishedAt: 9_000)
        let progress = TaskProgress(bytesDone: 1, bytesTotal: 1, bytesFetched: 1)
        #expect(try await fixture.store.write([.concluded(second, progress, conclusion)], now: 9_000) == false)
        #expect(try await fixture.store.write([.concluded(first, progress, conclusion)], now: 9_000) == true)
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 1)
        #expect(try await fixture.store.write([], now: 9_000) == false)
    }

    @Test("one that is added after the other completed is ready at once")
    func later() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add(inState: .completed)
        let id = try #require(try await fixture.add(follower(of: first)).first)
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 1)
        #expect(try fixture.states([id]) == [.queued])
    }

    @Test("a chain fails with its first, and says why", arguments: [TaskState.failed, .cancelled])
    func chain(state: TaskState) async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        var ids = [first]
        for _ in 0..<5 { ids += try await fixture.add(follower(of: ids[ids.count - 1])) }
        try await fixture.conclude(first, .inState(state))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 5)
        #expect(try fixture.states(Array(ids.dropFirst())) == Array(repeating: .failed, count: 5))
        let record = try #require(try fixture.store.record(ids[1], owner: nil))
        #expect(record.error?.message == "task \(first), which it depends on, is \(state.rawValue)")
        #expect(record.finishedAt == 9_000)
        #expect(try fixture.store.events(after: 0, limit: 100).events.filter { $0.type == .failed }.count >= 5)
    }

    @Test(
        "A39: a long chain is paused, resumed, cancelled, retried and failed in a time that grows with its length alone"
    )
    func longCommands() async throws {
        let fixture = try StoreFixture()
        let count = 4_000
        let first = try await fixture.add("https://example.org/a")
        var ids = [first]
        // Ids are consecutive, so that a whole chain is added at once.
        let tasks = (0..<count).map { follower(of: TaskID(first.rawValue + Int64($0))) }
        ids += try await fixture.store.add(tasks, now: 1).map(\.id)
        #expect(ids.last == TaskID(first.rawValue + Int64(count)))
        let meter = StatementMeter(fixture.store)
        for event in [TaskLifecycle.Event.pause, .resume, .cancel, .retry] {
            let before = meter.instructions
            #expect(try await fixture.store.apply(event, to: ids, owner: nil, now: 1).refused.isEmpty)
            // With a look at the whole chain for each task they would be some 80 million.
            let used = meter.instructions - before
            #expect(used < 2_000 * count, "\(event): \(used)")
            if event == .cancel { continue }
            let state = event == .pause ? TaskState.paused : .waiting
            #expect(try fixture.states(Array(ids.dropFirst())).allSatisfy { $0 == state }, "\(event)")
        }
        try await fixture.conclude(first, .inState(.failed))
        let (instructions, commits) = (meter.instructions, meter.commits)
        #expect(try await fixture.store.settleDependencies(now: 9_000) == count)
        #expect(meter.instructions - instructions < 2_000 * count)
        #expect(meter.commits - commits < 200, "many links are settled in one commit")
        #expect(try fixture.states(ids).allSatisfy { $0 == .failed })
    }

    @Test("A39: changing the dependencies of a long chain by a queue file has a limit, and a cycle is refused there")
    func longChanges() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.store.add((1...600).map { .sample("https://example.org/\($0)") }, now: 1)
        try await fixture.store.pool.write { database in
            for id in 2...500 {
                try database.setUncheckedDependency(of: TaskID(Int64(id)), after: TaskID(Int64(id - 1)))
            }
            var steps = 1_000
            func refusal(of id: Int64) -> String? {
                do {
                    try database.setDependency(of: TaskID(id), after: TaskID(500), steps: &steps)
                    return nil
                } catch {
                    return "\(error)"
                }
            }
            #expect(refusal(of: 1)?.contains("would depend on itself") == true)
            #expect(steps == 500)
            #expect(refusal(of: 600) == nil && steps == 0)
            #expect(refusal(of: 599)?.contains("in parts") == true)
        }
    }

    @Test("what follows a task that is removed fails")
    func removed() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let id = try #require(try await fixture.add(follower(of: first)).first)
        _ = try await fixture.store.remove([first], owner: nil, now: 1)
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 1)
        #expect(try fixture.store.record(id, owner: nil)?.error?.message.hasSuffix("no longer exists") == true)
        // A retry is accepted with knowledge of that failure.
        _ = try await fixture.store.apply(.retry, to: [id], owner: nil, now: 9_500)
        #expect(try await fixture.store.settleDependencies(now: 9_600) == 0)
        #expect(try fixture.states([id]) == [.queued])
    }

    @Test("whoever resumes a waiting one and says now has it start, whatever becomes of the other")
    func resumed() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let id = try #require(try await fixture.add(follower(of: first)).first)
        #expect(try await fixture.store.apply(.resume, to: [id], owner: nil, now: 1).changed.isEmpty)
        #expect(try fixture.states([id]) == [.waiting])
        #expect(try await fixture.store.apply(.resumeNow, to: [id], owner: nil, now: 1).hastened == [id])
        #expect(try fixture.states([id]) == [.queued])
        try await fixture.conclude(first, .inState(.failed))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 0)
        #expect(try fixture.states([id]) == [.queued])
    }

    @Test("one that was paused waits for the other when it is resumed, unless that has completed meanwhile")
    func paused() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let ids = try await fixture.add(follower(of: first, paused: true), follower(of: first, paused: true))
        _ = try await fixture.store.apply(.resume, to: [ids[0]], owner: nil, now: 1)
        #expect(try lifecycle(ids[0], in: fixture) == TaskLifecycle(follows: true))
        try await fixture.conclude(first, .inState(.completed))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 1)
        _ = try await fixture.store.apply(.resume, to: [ids[1]], owner: nil, now: 1)
        #expect(try fixture.states(ids) == [.queued, .queued])
    }

    @Test("a batch that is retried whole runs in its order again")
    func retried() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let id = try #require(try await fixture.add(follower(of: first)).first)
        try await fixture.conclude(first, .inState(.failed))
        _ = try await fixture.store.settleDependencies(now: 9_000)
        _ = try await fixture.store.apply(.retry, to: [first, id], owner: nil, now: 1)
        #expect(try fixture.states([first, id]) == [.queued, .waiting])
        // A retry of the follower alone fails again for as long as the other task is failed.
        try await fixture.conclude(first, .inState(.failed))
        _ = try await fixture.store.settleDependencies(now: 9_000)
        _ = try await fixture.store.apply(.retry, to: [id], owner: nil, now: 1)
        _ = try await fixture.store.settleDependencies(now: 9_000)
        #expect(try fixture.states([first, id]) == [.failed, .failed])
        // The order of the ids does not matter.
        _ = try await fixture.store.apply(.retry, to: [id, first], owner: nil, now: 1)
        _ = try await fixture.store.settleDependencies(now: 9_000)
        #expect(try fixture.states([first, id]) == [.queued, .waiting])
    }

    @Test("an entry that is changed to follow what has completed is ready, and none comes to follow itself")
    func changedDependency() async throws {
        let fixture = try StoreFixture()
        let done = try await fixture.add(inState: .completed)
        let failed = try await fixture.add(inState: .failed)
        func apply(_ key: String, after: TaskID) async throws {
            var task = NewTask.sample(key: key, lifecycle: TaskLifecycle(follows: true))
            task.specification.afterTask = after
            let set = try await fixture.store.beginStagedBatch(owner: 1000, batch: "b")
            _ = try await fixture.store.put(set, [task], now: 1)
            _ = try await fixture.store.commitStagedBatch(set, owner: 1000, prune: false, dryRun: false, now: 1)
            _ = try await fixture.store.settleDependencies(now: 9_000)
        }
        func id(_ key: String) throws -> TaskID {
            try #require(try fixture.store.read { try $0.taskID(owner: 1000, key: key) })
        }
        try await apply("a", after: failed)
        #expect(try fixture.states([id("a")]) == [.failed])
        try await apply("a", after: done)
        #expect(try fixture.states([id("a")]) == [.queued])
        let open = try await fixture.add("https://example.org/open")
        try await apply("x", after: open)
        try await apply("y", after: id("x"))
        await #expect(throws: StoreError.self) { try await apply("x", after: id("y")) }
        await #expect(throws: StoreError.self) { try await apply("x", after: id("x")) }
        #expect(try fixture.states([id("x"), id("y")]) == [.waiting, .waiting])
    }

    @Test(
        "an entry of a queue file that failed with what it follows, and is changed, waits for it again, or fails again")
    func changedEntry() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        func apply(_ priority: TaskPriority) async throws {
            var task = NewTask.sample(key: "k", priority: priority, lifecycle: TaskLifecycle(follows: true))
            task.specification.afterTask = first
            let set = try await fixture.store.beginStagedBatch(owner: 1000, batch: "b")
            _ = try await fixture.store.put(set, [task], now: 1)
            _ = try await fixture.store.commitStagedBatch(set, owner: 1000, prune: false, dryRun: false, now: 1)
            _ = try await fixture.store.settleDependencies(now: 9_000)
        }
        try await apply(.low)
        let id = try #require(try fixture.store.read { try $0.taskID(owner: 1000, key: "k") })
        #expect(try fixture.states([id]) == [.waiting])
        try await fixture.conclude(first, .inState(.failed))
        _ = try await fixture.store.settleDependencies(now: 9_000)
        #expect(try fixture.states([id]) == [.failed])
        try await apply(.normal)
        #expect(try fixture.states([id]) == [.failed])
        _ = try await fixture.store.apply(.retry, to: [first], owner: nil, now: 1)
        try await apply(.high)
        #expect(try fixture.states([id]) == [.waiting])
        try await fixture.conclude(first, .inState(.completed))
        _ = try await fixture.store.settleDependencies(now: 9_000)
        #expect(try fixture.states([id]) == [.queued])
    }

    @Test("what is to be settled is known to the next life")
    func reopened() async throws {
        let directory = try TemporaryDirectory()
        var id = TaskID(0)
        do {
            let fixture = try StoreFixture(in: directory)
            let first = try await fixture.add("https://example.org/a")
            id = try #require(try await fixture.add(follower(of: first)).first)
            try await fixture.conclude(first, .inState(.completed))
        }
        let fixture = try StoreFixture(in: directory)
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 1)
        #expect(try fixture.states([id]) == [.queued])
    }

    @Test("thousands that follow one task are settled in several commits")
    func many() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.add("https://example.org/a")
        let tasks = Array(repeating: follower(of: first), count: CommitLimit.rowsInCommit + 10)
        let ids = try await fixture.store.add(tasks, now: 1).map(\.id)
        try await fixture.conclude(first, .inState(.completed))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == ids.count)
        #expect(try fixture.store.counts(owner: nil)[.queued] == ids.count)
    }

    /// If the chain were walked for each task, the number of steps would be the number of pairs.
    @Test("a chain of 20,000 tasks is not walked for each one that is added", .timeLimit(.minutes(1)))
    func longChain() async throws {
        let fixture = try StoreFixture()
        let count = 20_000
        let tasks = (1...count).map { number in
            number == 1 ? NewTask.sample() : follower(of: TaskID(Int64(number - 1)))
        }
        let ids = try await fixture.store.add(tasks, now: 1_000).map(\.id)
        #expect(ids.last == TaskID(Int64(count)))
        // Adding tasks one after another is as fast.
        for _ in 0..<200 { _ = try await fixture.add(follower(of: TaskID(Int64(count)))) }
        try await fixture.conclude(TaskID(1), .inState(.completed))
        #expect(try await fixture.store.settleDependencies(now: 9_000) == 1)
        #expect(try lifecycle(TaskID(2), in: fixture) == TaskLifecycle())
    }
}
