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
        + zip(stored, [.queued, nil, nil, nil, .queued, .queued] as [TaskState?]).map {
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
        #expect(record.bytesDone == 10 && record.bytesFetched == 30)
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
