import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Where parts may lie")
struct PartPlacesTests {
    private func add(_ fixture: StoreFixture, _ directory: String?, _ state: TaskState = .queued) async throws -> TaskID
    {
        var task = NewTask.sample("https://example.org/a")
        task.specification.directory = directory
        guard let id = try await fixture.add(task).first else { throw StoreError.other("nothing was added") }
        if state != .queued { try await fixture.conclude(id, .inState(state)) }
        return id
    }

    @Test("the directories of all tasks are read part by part, each once in a part")
    func places() async throws {
        let fixture = try StoreFixture()
        var last = TaskID(0)
        for directory in [nil, "a", "a", "b", nil] { last = try await add(fixture, directory) }
        let (first, middle) = try fixture.store.placesOfTasks(after: TaskID(0), limit: 3)
        #expect(Set(first.map(\.directory)) == [nil, "a"] && first.count == 2)
        let (rest, end) = try fixture.store.placesOfTasks(after: try #require(middle), limit: 3)
        #expect(Set(rest.map(\.directory)) == [nil, "b"] && end == last)
        #expect(try fixture.store.placesOfTasks(after: last, limit: 3).last == nil)
    }

    @Test("the directories of removed tasks are remembered, the newest of them, over the store's lives")
    func removed() async throws {
        let directory = try TemporaryDirectory()
        let fixture = try StoreFixture(in: directory)
        let ids = [try await add(fixture, "a"), try await add(fixture, nil), try await add(fixture, "a")]
        #expect(try fixture.store.placesOfRemovedTasks() == [])
        _ = try await fixture.store.remove(ids, owner: nil, now: 2_000)
        for number in 0..<300 {
            _ = try await fixture.store.remove([try await add(fixture, "n\(number)")], owner: nil, now: 2_000)
        }
        try fixture.store.close()
        let next = try TaskStore(directory: directory.path)
        let places = try next.placesOfRemovedTasks().map(\.directory)
        #expect(places.count == 256 && places.last == "n299" && !places.contains("a"))
        try next.close()
    }

    @Test("a part's task is known with the time that stands on the part, and the newest number outlives its task")
    func tasks() async throws {
        let fixture = try StoreFixture()
        let (open, done) = (try await add(fixture, nil), try await add(fixture, nil, .completed))
        let (cancelled, gone) = (try await add(fixture, nil, .cancelled), try await add(fixture, nil))
        _ = try await fixture.store.remove([gone], owner: nil, now: 2_000)
        let (tasks, newest) = try fixture.store.partTasks([open, done, cancelled, gone, TaskID(99)])
        #expect(newest == gone)
        #expect(
            tasks == [
                open: PartTask(createdAt: 1_000, isCompleted: false),
                done: PartTask(createdAt: 1_000, isCompleted: true),
                cancelled: PartTask(createdAt: 1_000, isCompleted: false),
            ])
    }

    @Test("lives are told apart by the numbers that they found; one that gave none leaves no trace")
    func lifetimes() async throws {
        let directory = try TemporaryDirectory()
        for (time, adds) in [(10, true), (20, false), (30, true)] as [(Milliseconds, Bool)] {
            let fixture = try StoreFixture(in: directory)
            try await fixture.store.beginLifetime(at: time)
            if adds { _ = try await add(fixture, nil) }
            try fixture.store.close()
        }
        let store = try TaskStore(directory: directory.path)
        #expect(
            try store.lifetimes() == [
                StoreLifetime(newest: TaskID(0), since: 10), StoreLifetime(newest: TaskID(1), since: 30),
            ])
        try store.close()
    }
}
