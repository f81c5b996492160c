import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("The queue in its order") struct TaskQueueOrderTests {
    /// Returns the caller's ready tasks in the order of start, read some at a time.
    private func order(
        _ fixture: QueueFixture, _ filter: TaskFilter = TaskFilter(), for caller: Caller = QueueFixture.administrator
    ) async throws -> [Int64] {
        var reader = await fixture.queue.queueOrder(filter, for: caller)
        var order: [Int64] = []
        while case let part = try reader.next(2), !part.isEmpty { order += part.map(\.rawValue) }
        return order
    }

    private func paused() async throws -> QueueFixture {
        let fixture = try await QueueFixture { $0.activeTasks = 1 }
        await fixture.queue.scheduler.setPause(SchedulePause(until: nil))
        return fixture
    }

    @Test("a move, a priority and the turns of owners show at once")
    func moves() async throws {
        let fixture = try await paused()
        let other = Caller(uid: 1001, isAdministrator: false)
        for number in 1...4 { _ = try await fixture.add("http://127.0.0.1:1/\(number)") }
        _ = try await fixture.add("http://127.0.0.1:1/5", by: other)
        _ = try await fixture.add("http://127.0.0.1:1/6") { $0.priority = .high }
        _ = try await fixture.queue.move(TaskID(4), .first, by: QueueFixture.me)
        let own = try await order(fixture, for: QueueFixture.me)
        #expect(own == [6, 4, 1, 2, 3])
        #expect(try await order(fixture, TaskFilter(owner: 1001)) == [5])
        #expect(try await order(fixture).count == 6)
        #expect(try await order(fixture, TaskFilter(batch: "b")) == [])
        #expect(try fixture.queue.hasSeveralOwners(for: QueueFixture.administrator))
        #expect(try !fixture.queue.hasSeveralOwners(for: QueueFixture.me))
    }

    @Test("the statuses come in the order asked, without those that do not match")
    func statuses() async throws {
        let fixture = try await paused()
        for name in ["a", "b", "c"] { _ = try await fixture.add("http://127.0.0.1:1/\(name)") }
        let ids = [TaskID(3), TaskID(1), TaskID(2), TaskID(9)]
        let all = try await fixture.queue.readyStatuses(of: ids, matching: TaskFilter(), for: QueueFixture.me)
        #expect(all.map(\.id.rawValue) == [3, 1, 2])
        let some = try await fixture.queue.readyStatuses(
            of: ids, matching: TaskFilter(search: "/b"), for: QueueFixture.me)
        #expect(some.map(\.id.rawValue) == [2])
    }
}
