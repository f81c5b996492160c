import TaskModel
import Testing

@testable import TaskStore

@Suite("What the scheduler writes")
struct TaskStoreChangesTests {
    @Test("a checkpoint sets the counts, makes no event, and keeps what it does not name")
    func checkpoint() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let full = TaskProgress(
            bytesDone: 5, bytesTotal: 10, bytesFetched: 7, path: "/d/a", startedAt: 2_000, resumeData: [1, 2, 3])
        try await fixture.store.write([.checkpoint(id, full)], now: 2_000)
        let bare = TaskProgress(bytesDone: 6, bytesTotal: nil, bytesFetched: 8)
        try await fixture.store.write([.checkpoint(id, bare)], now: 3_000)
        let work = try #require(try fixture.store.work(for: id))
        #expect(work.record.bytesDone == 6)
        #expect(work.record.bytesTotal == nil)
        #expect(work.record.bytesFetched == 8)
        #expect(work.record.path == "/d/a")
        #expect(work.record.startedAt == 2_000)
        #expect(work.record.lifecycle.state == .queued)
        #expect(work.resumeData == [1, 2, 3])
        #expect(try fixture.store.lastEvent() == 1)
    }

    @Test(
        "a conclusion stores the lifecycle with everything beside it, and an event after its state",
        arguments: TaskState.allCases)
    func conclusion(state: TaskState) async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let error = TaskFailure(code: .http(500), message: "the server failed", httpStatus: 500)
        let lifecycle = try TaskLifecycle.inState(state, until: 12_000)
        let events = try await fixture.conclude(id, lifecycle, error: error, resumeData: [9])

        let work = try #require(try fixture.store.work(for: id))
        // A running task is never stored as such.
        #expect(work.record.lifecycle == (state == .active ? TaskLifecycle() : lifecycle))
        #expect(work.record.attempts == 3)
        #expect(work.record.failures == 2)
        #expect(work.record.error == error)
        #expect(work.record.finishedAt == (state.isEnded ? 9_000 : nil))
        #expect(work.resumeData == (state == .completed ? nil : [9]))
        if state == .queued || state == .active {
            #expect(events.isEmpty)
        } else {
            var event = TaskEvent(
                sequence: 2, at: 9_000, type: try #require(TaskEvent.Kind(rawValue: state.rawValue)), id: id,
                state: state, reason: lifecycle.reason, error: error)
            (event.kind, event.owner, event.url) = (.download, work.record.owner, "https://example.org/a")
            (event.bytesDone, event.bytesTotal, event.path) = (10, 20, work.record.path)
            #expect(events == [event])
        }
    }

    @Test("a conclusion without resume data erases what there was")
    func resumeDataErased() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await fixture.conclude(id, .inState(.waiting), resumeData: [1])
        #expect(try fixture.store.work(for: id)?.resumeData == [1])
        try await fixture.conclude(id, .inState(.waiting))
        #expect(try fixture.store.work(for: id)?.resumeData == nil)
    }

    @Test("a change for a removed task is passed over, and the others are written")
    func removedMeanwhile() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(.sample(), .sample(), .sample())
        _ = try await fixture.store.remove([ids[0], ids[1]], owner: nil, now: 2)
        let progress = TaskProgress(bytesDone: 5, bytesTotal: 5, bytesFetched: 5, resumeData: [1])
        let conclusion = TaskConclusion(lifecycle: try .inState(.completed), attempts: 1, failures: 0, verified: true)
        let last = try fixture.store.lastEvent()
        try await fixture.store.write(
            [
                .checkpoint(ids[0], progress), .concluded(ids[1], progress, conclusion),
                .concluded(ids[2], progress, conclusion),
            ], now: 3)
        #expect(try fixture.store.events(after: last, limit: 10).events.map(\.id) == [ids[2]])
        #expect(try fixture.store.record(ids[2], owner: nil)?.verified == true)
        #expect(try fixture.states(ids) == [nil, nil, .completed])
    }

    @Test("secrets are erased with success, also from the bytes of the file, and kept with any other end")
    func secretsErased() async throws {
        let fixture = try StoreFixture()
        var tasks: [NewTask] = []
        // The number suffices to fill and empty whole pages, and to move rows between pages.
        for number in 0..<300 {
            let filler = String(repeating: "f", count: number % 50)
            tasks.append(.sample("https://example.org/\(number)").with(password: "hush-hush-\(filler)\(number)"))
        }
        let ids = try await fixture.store.add(tasks, now: 1).map(\.id)
        try await fixture.checkpoint()
        #expect(try occurrences(of: "hush-hush-", in: fixture) >= 300)

        // Every third task first, so that the remaining rows move.
        for id in ids where id.rawValue % 3 == 0 { try await fixture.conclude(id, .inState(.failed)) }
        #expect(try fixture.store.work(for: ids[2])?.secrets.password == tasks[2].secrets.password)
        for remainder in [Int64(1), 2, 0] {
            for id in ids where id.rawValue % 3 == remainder { try await fixture.conclude(id, .inState(.completed)) }
        }
        #expect(try fixture.store.work(for: ids[2])?.secrets == TaskSecrets())
        try await fixture.checkpoint()
        #expect(try occurrences(of: "hush-hush-", in: fixture) == 0)
    }

    private func occurrences(of word: String, in fixture: StoreFixture) throws -> Int {
        let bytes = try StoreFixture.bytes(of: fixture.databasePath)
        let word = Array(word.utf8)
        var count = 0
        var index = 0
        while index + word.count <= bytes.count {
            if bytes[index] == word[0], bytes[index..<(index + word.count)].elementsEqual(word) { count += 1 }
            index += 1
        }
        return count
    }
}
