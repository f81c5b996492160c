import TaskModel
import Testing

@testable import TaskStore

@Suite("People's commands")
struct TaskStoreCommandsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let command: TaskLifecycle.Event
        let before: TaskState
        /// The new state, or `nil` if the command is refused.
        let after: TaskState?
        let event: TaskEvent.Kind?
        var testDescription: String { "\(command) while \(before)" }
    }

    static let stored: [TaskState] = [.queued, .waiting, .paused, .completed, .failed, .cancelled]
    static let cases: [Case] =
        zip(stored, [.paused, .paused, .paused, nil, nil, nil] as [TaskState?]).map {
            Case(command: .pause, before: $0, after: $1, event: $0 == .paused ? nil : .paused)
        }
        + zip(stored, [.queued, .queued, .queued, nil, nil, nil] as [TaskState?]).map {
            Case(command: .resume, before: $0, after: $1, event: $0 == .queued ? nil : .resumed)
        }
        + zip(stored, [.cancelled, .cancelled, .cancelled, nil, nil, .cancelled] as [TaskState?]).map {
            Case(command: .cancel, before: $0, after: $1, event: $0 == .cancelled ? nil : .cancelled)
        }
        + zip(stored, [.queued, nil, nil, .queued, .queued, .queued] as [TaskState?]).map {
            Case(command: .retry, before: $0, after: $1, event: $0 == .queued ? nil : .retried)
        }

    @Test("every command on every state", arguments: cases)
    func table(_ one: Case) async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await fixture.conclude(id, .inState(one.before, until: 50_000), resumeData: [1])
        let last = try fixture.store.lastEvent()

        let outcome = try await fixture.store.apply(one.command, to: [id], owner: 1000, now: 70_000)
        let events = try fixture.store.events(after: last, limit: 10).events
        let record = try #require(try fixture.store.record(id, owner: nil))
        #expect(outcome.unknown.isEmpty)
        guard let after = one.after else {
            #expect(outcome.refused.map(\.0) == [id])
            #expect(outcome.refused.map(\.1.event) == [one.command])
            #expect(outcome.refused.map(\.1.state) == [one.before])
            #expect(outcome.changed.isEmpty && events.isEmpty)
            #expect(record.lifecycle.state == one.before)
            return
        }
        #expect(outcome.refused.isEmpty)
        #expect(outcome.changed == (one.event == nil ? [] : [id]))
        #expect(record.lifecycle.state == after)
        #expect(record.lifecycle.notBefore == nil)
        #expect(events.map(\.type) == [one.event].compactMap(\.self))
        #expect(events.allSatisfy { $0.id == id && $0.state == after && $0.at == 70_000 })
        let isFetchedAgain = one.before == .completed
        #expect(record.bytesDone == (isFetchedAgain ? 0 : 10) && record.bytesFetched == 30)
        #expect(record.round == (isFetchedAgain ? 1 : 0))
        if one.before != .completed { #expect(try fixture.store.work(for: id)?.resumeData == [1]) }
    }

    @Test("cancel sets the time of the end; retry clears it, the error and the count of failures")
    func times() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        _ = try await fixture.store.apply(.cancel, to: [id], owner: nil, now: 5_000)
        #expect(try fixture.store.record(id, owner: nil)?.finishedAt == 5_000)

        let failed = try await fixture.add("https://example.org/b")
        try await fixture.conclude(
            failed, .inState(.failed), error: TaskFailure(code: .http(404), message: "gone", httpStatus: 404))
        _ = try await fixture.store.apply(.retry, to: [failed], owner: nil, now: 6_000)
        let record = try #require(try fixture.store.record(failed, owner: nil))
        #expect(record.error == nil)
        #expect(record.finishedAt == nil)
        #expect(record.failures == 0)
        #expect(record.attempts == 3)
    }

    /// Adds a task with a start time.
    private func scheduled(_ fixture: StoreFixture, paused: Bool = false) async throws -> TaskID {
        var task = NewTask.sample(
            "https://example.org/s", lifecycle: TaskLifecycle(paused: paused, startAt: 50_000, now: 1))
        task.specification.startAt = 50_000
        return try #require(try await fixture.add(task).first)
    }

    private func lifecycle(_ id: TaskID, in fixture: StoreFixture) throws -> TaskLifecycle? {
        try fixture.store.record(id, owner: nil)?.lifecycle
    }

    @Test("F84: a paused task returns to its start time, and now removes that for good")
    func schedule() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let later = TaskLifecycle(startAt: 50_000, now: 1)
        for paused in [false, true] {
            let id = try await scheduled(fixture, paused: paused)
            _ = try await store.apply(.pause, to: [id], owner: nil, width: .all, now: 2)
            _ = try await store.apply(.resume, to: [id], owner: nil, now: 3)
            #expect(try lifecycle(id, in: fixture) == later)
            #expect(try await store.apply(.resume, to: [id], owner: nil, now: 4).changed.isEmpty)
            #expect(try lifecycle(id, in: fixture) == later)
            // A retry returns to it too.
            _ = try await store.apply(.cancel, to: [id], owner: nil, now: 5)
            _ = try await store.apply(.retry, to: [id], owner: nil, now: 6)
            #expect(try lifecycle(id, in: fixture) == later)
            let outcome = try await store.apply(.resumeNow, to: [id], owner: nil, now: 7)
            #expect(outcome.changed == [id] && outcome.hastened == [id])
            #expect(try store.record(id, owner: nil)?.specification.startAt == nil)
            _ = try await store.apply(.pause, to: [id], owner: nil, now: 8)
            _ = try await store.apply(.resume, to: [id], owner: nil, now: 9)
            #expect(try lifecycle(id, in: fixture) == TaskLifecycle())
        }
        let past = try await scheduled(fixture, paused: true)
        _ = try await store.apply(.resume, to: [past], owner: nil, now: 50_000)
        #expect(try lifecycle(past, in: fixture) == TaskLifecycle())
    }

    @Test("F84: a task that was paused by itself stays paused when a wider pause ends")
    func ownPause() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let added = try await fixture.add("https://example.org/a", lifecycle: TaskLifecycle(paused: true))
        let single = try await fixture.add("https://example.org/b")
        let batch = try await fixture.add("https://example.org/c")
        let running = try await fixture.add("https://example.org/d")
        let needy = try await fixture.add("https://example.org/e")
        try await fixture.conclude(needy, try #require(TaskLifecycle(state: .paused, reason: .auth, notBefore: nil)))
        let ids = [added, single, batch, running, needy]
        let need = try #require(try lifecycle(needy, in: fixture))
        #expect(need.reason?.needsPerson == true)
        _ = try await store.apply(.pause, to: [single], owner: nil, now: 1)
        _ = try await store.apply(.pause, to: [batch], owner: nil, width: .matching, now: 2)
        // The scheduler has recorded the pause of a task that ran.
        try await fixture.conclude(running, TaskLifecycle(paused: true))
        _ = try await store.apply(.pause, to: ids, owner: nil, width: .all, stopped: [running], now: 3)
        _ = try await store.apply(.pause, to: ids, owner: nil, width: .all, now: 4)

        let first = try await store.apply(.resume, to: ids, owner: nil, width: .all, now: 5)
        #expect(Set(first.changed) == [running, needy] && first.refused.isEmpty)
        #expect(try fixture.states(ids) == [.paused, .paused, .paused, .queued, .paused])
        #expect(try lifecycle(needy, in: fixture) == need)
        #expect(try await store.apply(.resume, to: [batch], owner: nil, width: .matching, now: 6).changed == [batch])
        #expect(try await store.apply(.resume, to: [single], owner: nil, now: 7).changed == [single])
        // Without a wider pause in between, all means all.
        #expect(try await store.apply(.resume, to: [added], owner: nil, width: .all, now: 8).changed == [added])
        // What was needed before may be there after a change.
        _ = try await store.apply(.pause, to: [needy], owner: nil, width: .all, now: 8)
        var changes = TaskChanges()
        changes.limit = .set(1_000)
        _ = try await store.update(needy, by: changes, owner: nil, now: 8) { task, _, owner in
            NewTask(
                specification: task, secrets: TaskSecrets(), owner: owner, host: "https://example.org:443",
                lifecycle: TaskLifecycle())
        }
        #expect(try await store.apply(.resume, to: [needy], owner: nil, width: .all, now: 8).changed == [needy])
        #expect(try fixture.states([needy]) == [.queued])
        // An earlier pause is forgotten.
        _ = try await store.apply(.pause, to: [single], owner: nil, width: .all, now: 9)
        #expect(try await store.apply(.resume, to: [single], owner: nil, width: .all, now: 10).changed == [single])
    }

    @Test("an unknown id and another user's are both unknown; the others are done")
    func unknown() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(.sample(owner: 1), .sample(owner: 2))
        let outcome = try await fixture.store.apply(.pause, to: [ids[0], ids[1], TaskID(99)], owner: 2, now: 1)
        #expect(outcome.changed == [ids[1]])
        #expect(outcome.unknown == [ids[0], TaskID(99)])
        #expect(try fixture.states(ids) == [.queued, .paused])
    }

    @Test("an id named twice is changed once")
    func twice() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let outcome = try await fixture.store.apply(.pause, to: [id, id], owner: nil, now: 1)
        #expect(outcome.changed == [id])
        #expect(try fixture.store.lastEvent() == 2)
    }

    @Test("the removal of a whole batch in several commits does not end the batch between two of them")
    func removeBatch() async throws {
        let fixture = try StoreFixture()
        // More than the rows of one commit.
        let tasks = (0...CommitLimit.rowsInCommit + 1).map { NewTask.sample("https://example.org/\($0)", batch: "b") }
        let ids = try await fixture.store.add(tasks, now: 1).map(\.id)
        _ = try await fixture.store.apply(.cancel, to: Array(ids.dropFirst()), owner: nil, now: 2)
        let last = try fixture.store.lastEvent()
        #expect(try await fixture.store.remove(ids, owner: nil, now: 3).ids.count == ids.count)
        let filter = EventFilter(types: [.batchFinished])
        #expect(try fixture.store.events(after: last, limit: 10, filter: filter).events.isEmpty)
    }

    @Test("remove gives back what is to be known of them and deletes everything that belonged to them")
    func remove() async throws {
        let fixture = try StoreFixture()
        let outcomes = try await fixture.store.add(
            [.sample(owner: 1).with(password: "p"), .sample(owner: 2)], now: 1)
        let ids = outcomes.map(\.id)
        _ = try await fixture.store.write(
            [.checkpoint(ids[0], TaskProgress(bytesDone: 4, bytesTotal: 9, bytesFetched: 4, resumeData: [1]))], now: 2)
        let removed = try await fixture.store.remove([ids[0], ids[1], TaskID(99)], owner: 1, now: 3)
        #expect(
            removed
                == RemovedTasks(ids: [ids[0]], places: [PartPlace(directory: nil, owner: 1)], ownersOfBytes: [1]))
        #expect(try fixture.store.work(for: ids[0]) == nil)
        #expect(try fixture.store.record(ids[1], owner: 2) != nil)
        let rest = try fixture.store.read { database in
            try database.rows("SELECT (SELECT count(*) FROM task_secret) + (SELECT count(*) FROM task_resume)") {
                try $0.integer(0)
            }
        }
        #expect(rest == [0])
        let events = try fixture.store.events(after: 2, limit: 10).events
        #expect(events.map(\.type) == [.removed])
        #expect(events.map(\.id) == [ids[0]])
    }

    @Test("the source of an upload may be another after a retry, and after a resume where it was what had changed")
    func sourceForgotten() async throws {
        let fixture = try StoreFixture()
        func task(_ kind: TaskKind, _ lifecycle: (inout TaskLifecycle) throws -> Void) async throws -> TaskID {
            let id = try await fixture.add(.sample(kind: kind))[0]
            var after = TaskLifecycle()
            try after.apply(.start)
            try lifecycle(&after)
            try await fixture.conclude(id, after, resumeData: [1])
            return id
        }
        func isKept(_ id: TaskID, after event: TaskLifecycle.Event) async throws -> Bool {
            let outcome = try await fixture.store.apply(event, to: [id], owner: nil, now: 5)
            #expect(outcome.changed == [id])
            return try fixture.store.work(for: id)?.resumeData == [1]
        }
        let changed: (inout TaskLifecycle) throws -> Void = { try $0.apply(.block(.sourceChanged)) }
        #expect(try await !isKept(task(.upload, changed), after: .resume))
        #expect(try await isKept(task(.upload) { try $0.apply(.pause) }, after: .resume))
        #expect(try await isKept(task(.upload) { try $0.apply(.block(.auth)) }, after: .resume))
        #expect(try await isKept(task(.upload) { try $0.apply(.park(.retry, until: 9)) }, after: .resume))
        #expect(try await !isKept(task(.upload) { try $0.apply(.fail) }, after: .retry))
        #expect(try await isKept(task(.download) { try $0.apply(.fail) }, after: .retry))
    }
}
