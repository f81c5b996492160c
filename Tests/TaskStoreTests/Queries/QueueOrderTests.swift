import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Ready tasks part by part") struct QueueOrderTests {
    @Test(
        "parts of any size give the tasks of a group in the order of start, without gaps", arguments: [1, 2, 3, 7, 99])
    func parts(size: Int) async throws {
        let fixture = try StoreFixture()
        for number in 0..<20 {
            var task = NewTask.sample("http://h/\(number)")
            task.specification.priority = TaskPriority.allCases[number % 4]
            _ = try await fixture.add(task)
        }
        _ = try await fixture.store.move(TaskID(13), .first, owner: nil, now: 1)
        let group = try #require(try fixture.store.readyGroups(of: 1000, limit: 1).first)
        let all = try fixture.store.readyTasks(of: group.id, limit: 100)
        var found: [ReadyTask] = []
        while case let part = try fixture.store.readyTasks(of: group.id, after: found.last, limit: size), !part.isEmpty
        {
            #expect(part.count <= size)
            found += part
        }
        #expect(found == all && all.count == 20)
        #expect(try !fixture.store.hasSeveralOwners())
    }
}
