import TaskModel
import Testing

@testable import TaskStore

@Suite("Changes to what is asked for")
struct TaskStoreUpdatesTests {
    private static let validate: TaskStore.Validation = { (asked, _, owner) throws(FieldError) in
        var specification = asked
        let address = try specification.check()
        let secrets = specification.takeSecrets(redactedURL: address.redacted)
        return NewTask(
            specification: specification, secrets: secrets, owner: owner, host: address.hostKey,
            lifecycle: TaskLifecycle(), path: specification.output.map { "/d/\($0)" })
    }

    private static func changes(_ make: (inout TaskChanges) -> Void) -> TaskChanges {
        var changes = TaskChanges()
        make(&changes)
        return changes
    }

    private static func update(
        _ fixture: StoreFixture, _ id: TaskID, owner: UInt32? = 1000, _ make: (inout TaskChanges) -> Void
    ) async throws -> UpdateOutcome {
        let changes = changes(make)
        let expected = try fixture.store.checkUpdate(id, by: changes, owner: owner, now: 70_000, validate: validate)
        let outcome = try await fixture.store.update(id, by: changes, owner: owner, now: 70_000, validate: validate)
        #expect(outcome == expected)
        return outcome
    }

    @Test("another directory keeps the name that the server gave the file")
    func directory() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add(.sample("https://example.org/a", path: "/d/served"))[0]
        var changes = Self.changes { $0.directory = .set("other") }
        let validate: TaskStore.Validation = { (asked, _, owner) throws(FieldError) in
            NewTask(
                specification: asked, secrets: TaskSecrets(), owner: owner, host: "https://example.org:443",
                lifecycle: TaskLifecycle(), path: "/d/\(asked.directory ?? "")/\(asked.expectedName)")
        }
        _ = try await fixture.store.update(id, by: changes, owner: 1000, now: 1, validate: validate)
        #expect(try fixture.store.record(id, owner: nil)?.path == "/d/other/served")
        changes.output = .set("o")
        _ = try await fixture.store.update(id, by: changes, owner: 1000, now: 1, validate: validate)
        #expect(try fixture.store.record(id, owner: nil)?.path == "/d/other/o")
    }

    @Test("a task moves to another batch, within its limit, and its batch ends if nothing open is left in it")
    func batch() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            .sample("https://example.org/a", batch: "old"), .sample("https://example.org/b", batch: "old"))
        try await fixture.conclude(ids[0], .inState(.completed))
        #expect(try await Self.update(fixture, ids[1]) { $0.batch = .set("new") } == .updated)
        let totals = try fixture.store.batches(owner: 1000)
        #expect(totals.map(\.batch) == ["new", "old"])
        #expect(try fixture.store.record(ids[1], owner: nil)?.specification.batch == "new")
        let ended = try fixture.store.events(after: 0, limit: 100).events.filter { $0.type == .batchFinished }
        #expect(ended.count == 1 && ended.first?.batch == "old")
        let full = Self.changes { $0.batch = .set("old") }
        await #expect(throws: StoreError.self) {
            _ = try await fixture.store.update(
                ids[1], by: full, owner: 1000, quota: Quota(tasksPerBatch: 1), now: 2, validate: Self.validate)
        }
        #expect(try fixture.store.record(ids[1], owner: nil)?.specification.batch == "new")
        #expect(try await Self.update(fixture, ids[1]) { $0.batch = .takeBack } == .updated)
        #expect(try fixture.store.batches(owner: 1000).map(\.batch) == ["old"])
    }

    @Test("a task waits for another one from the change on, and starts without it; a circle is refused")
    func dependency() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(.sample("https://example.org/a"), .sample("https://example.org/b"))
        #expect(try await Self.update(fixture, ids[1]) { $0.afterTask = .set(ids[0]) } == .updated)
        #expect(try fixture.store.record(ids[1], owner: nil)?.lifecycle == TaskLifecycle(follows: true))
        let circle = Self.changes { $0.afterTask = .set(ids[1]) }
        await #expect(throws: StoreError.self) {
            _ = try await fixture.store.update(ids[0], by: circle, owner: 1000, now: 2, validate: Self.validate)
        }
        #expect(try await Self.update(fixture, ids[1]) { $0.afterTask = .takeBack } == .updated)
        #expect(try fixture.store.record(ids[1], owner: nil)?.lifecycle.state == .queued)
    }

    @Test("several tasks change in one commit, and each that cannot says why")
    func several() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(.sample("https://example.org/a"), .sample("https://example.org/b"))
        try await fixture.conclude(ids[1], .inState(.completed))
        let asked = ids + [TaskID(99)]
        let changes = Self.changes { $0.limit = .set(5) }
        let outcomes = try await fixture.store.update(asked, by: changes, owner: 1000, now: 1, validate: Self.validate)
        #expect(outcomes[ids[0]] == .updated && outcomes[TaskID(99)] == .unknown)
        guard case .refused(let transition) = outcomes[ids[1]] else {
            Issue.record("a completed task changed")
            return
        }
        #expect(transition.state == .completed)
        let again = try fixture.store.checkUpdate(asked, by: changes, owner: 1000, now: 1, validate: Self.validate)
        #expect(again[ids[0]] == .unchanged)
    }

    @Test("all that is asked for changes in one commit with one event; bytes, resume data and the rest stay")
    func whole() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add(
            .sample("https://example.org/a?sig=REDACTED", batch: "b", path: "/d/a").with(
                secretURL: "https://example.org/a?sig=1", password: nil))[0]
        try await fixture.conclude(id, .inState(.paused), resumeData: [1])
        let last = try fixture.store.lastEvent()
        let outcome = try await Self.update(fixture, id) {
            $0.url = "https://u:p@example.net:444/b?sig=2"
            $0.output = .set("o")
            $0.connections = .set(.exactly(3))
            $0.limit = .set(500)
            $0.headers = .set(["Authorization: x"])
            $0.priority = .set(.high)
        }
        #expect(outcome == .updated)
        let work = try #require(try fixture.store.work(for: id))
        let record = work.record
        #expect(record.specification.url == "https://example.net:444/b?sig=REDACTED")
        #expect(work.host == "https://example.net:444" && record.path == "/d/o")
        #expect(record.specification.output == "o" && record.specification.connections == .exactly(3))
        #expect(record.specification.limit == 500 && record.specification.priority == .high)
        #expect(record.specification.headers.isEmpty && record.specification.batch == "b")
        #expect(work.secrets.url == "https://u:p@example.net:444/b?sig=2")
        #expect(work.secrets.headers == ["Authorization: x"])
        #expect(work.resumeData == [1] && record.bytesDone == 10 && record.bytesFetched == 30)
        #expect(record.lifecycle.state == .paused && record.lifecycle.reason == .user && record.attempts == 3)
        let events = try fixture.store.events(after: last, limit: 10).events
        #expect(events.map(\.type) == [.updated] && events[0].state == .paused && events[0].at == 70_000)
    }

    @Test("secrets that are not named stay, those that are taken back are gone")
    func secrets() async throws {
        let fixture = try StoreFixture()
        var task = NewTask.sample()
        task.secrets.user = "me"
        task.secrets.password = "p"
        task.secrets.headers = ["A: b"]
        let id = try await fixture.add(task)[0]
        #expect(try await Self.update(fixture, id) { $0.limit = .set(5) } == .updated)
        #expect(try fixture.store.work(for: id)?.secrets == task.secrets)
        #expect(try await Self.update(fixture, id) { $0.headers = .takeBack } == .updated)
        task.secrets.headers = nil
        #expect(try fixture.store.work(for: id)?.secrets == task.secrets)
        let plain = try await fixture.add("https://example.org/b")
        #expect(try await Self.update(fixture, plain) { $0.headers = .set(["A: b"]) } == .updated)
        #expect(try await Self.update(fixture, plain) { $0.headers = .takeBack } == .updated)
        let kept = try fixture.store.read { database in
            try database.rows("SELECT task_id FROM task_secret") { try $0.id(0) }
        }
        #expect(kept == [id])
    }

    @Test("what is asked for already changes nothing and tells nobody")
    func unchanged() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let last = try fixture.store.lastEvent()
        #expect(
            try await Self.update(fixture, id) {
                $0.url = "https://example.org/a"
                $0.limit = .takeBack
                $0.priority = .set(.normal)
                $0.startAt = .takeBack
            } == .unchanged)
        #expect(try fixture.store.lastEvent() == last)
    }

    @Test("only the owner's task is known, an ended one is refused, a wrong field is named; nothing is written")
    func refused() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let completed = try await fixture.add(inState: .completed)
        let cancelled = try await fixture.add(inState: .cancelled)
        let last = try fixture.store.lastEvent()
        #expect(try await Self.update(fixture, id, owner: 1001) { $0.limit = .set(5) } == .unknown)
        #expect(try await Self.update(fixture, TaskID(99), owner: nil) { $0.limit = .set(5) } == .unknown)
        for (id, state) in [(completed, TaskState.completed), (cancelled, .cancelled)] {
            guard case .refused(let reason) = try await Self.update(fixture, id, { $0.limit = .set(5) }) else {
                Issue.record("what is \(state) was changed")
                continue
            }
            #expect(reason.event == .update && reason.state == state)
        }
        guard case .wrong(let error) = try await Self.update(fixture, id, { $0.output = .set("a/b") }) else {
            Issue.record("a path was taken for a name")
            return
        }
        #expect(error.field == "output")
        #expect(try fixture.store.lastEvent() == last)
        #expect(try fixture.store.record(id, owner: nil)?.specification.output == nil)
    }

    @Test("a failed task goes on with another URL, its failures forgotten and its bytes kept")
    func failed() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await fixture.conclude(
            id, .inState(.failed), error: TaskFailure(code: .http(404), message: "m", httpStatus: 404),
            resumeData: [1])
        #expect(try await Self.update(fixture, id) { $0.limit = .set(5) } == .updated)
        #expect(try fixture.states([id]) == [.failed])
        let last = try fixture.store.lastEvent()
        #expect(try await Self.update(fixture, id) { $0.url = "https://example.org/b" } == .updated)
        let record = try #require(try fixture.store.record(id, owner: nil))
        #expect(record.lifecycle == TaskLifecycle() && record.failures == 0 && record.error == nil)
        #expect(record.finishedAt == nil && record.bytesDone == 10)
        #expect(try fixture.store.work(for: id)?.resumeData == [1])
        #expect(try fixture.store.events(after: last, limit: 9).events.map(\.type) == [.retried, .updated])
    }

    @Test("an expired URL goes on with a fresh one, and with the very same where a person says so")
    func expired() async throws {
        let fixture = try StoreFixture()
        for url in ["https://example.org/a?sig=2", "https://example.org/a"] {
            let id = try await fixture.add("https://example.org/a")
            var lifecycle = try TaskLifecycle.inState(.active)
            try lifecycle.apply(.block(.urlExpired))
            try await fixture.conclude(id, lifecycle, error: TaskFailure(code: .http(403), message: "m"))
            #expect(try await Self.update(fixture, id) { $0.url = url } == .updated)
            let record = try #require(try fixture.store.record(id, owner: nil))
            #expect(record.lifecycle == TaskLifecycle() && record.error == nil && record.attempts == 3)
        }
    }

    @Test("another priority changes the order of the ready ones")
    func priority() async throws {
        let fixture = try StoreFixture()
        var ids: [TaskID] = []
        for name in ["a", "b", "c"] { ids.append(try await fixture.add("https://example.org/\(name)")) }
        #expect(try await Self.update(fixture, ids[2]) { $0.priority = .set(.high) } == .updated)
        #expect(try await Self.update(fixture, ids[0]) { $0.priority = .set(.low) } == .updated)
        let group = try #require(try fixture.store.readyGroups(of: 1000, limit: 1).first)
        #expect(try fixture.store.readyTasks(of: group.id, limit: 9).map(\.id) == [ids[2], ids[1], ids[0]])
    }

    @Test("with another URL an upload sends its source as it is then, and with another limit it does not")
    func source() async throws {
        let fixture = try StoreFixture()
        var task = NewTask.sample("https://example.org/a?sig=REDACTED", kind: .upload).with(
            secretURL: "https://example.org/a?sig=1", password: nil)
        task.specification.file = "/f"
        let id = try await fixture.add(task)[0]
        try await fixture.conclude(id, .inState(.paused), resumeData: [1])
        #expect(try await Self.update(fixture, id) { $0.limit = .set(5) } == .updated)
        #expect(try fixture.store.work(for: id)?.resumeData == [1])
        #expect(try await Self.update(fixture, id) { $0.url = "https://example.org/a?sig=2" } == .updated)
        #expect(try fixture.store.work(for: id)?.resumeData == nil)
    }

    @Test("F85: paths follow the directories of downloads, but for completed and running tasks and uploads")
    func paths() async throws {
        let fixture = try StoreFixture()
        var ids: [TaskID] = []
        let places: [(name: String, directory: String?)] = [
            ("a", nil), ("b", "sub"), ("c", "/abs"), ("d", nil), ("e", nil),
        ]
        for (name, directory) in places {
            var task = NewTask.sample("https://example.org/" + name)
            task.specification.directory = directory
            task.path = (directory == "/abs" ? "/abs" : directory == nil ? "/old" : "/old/sub") + "/" + name
            ids.append(try #require(try await fixture.add(task).first))
        }
        try await fixture.conclude(ids[3], .inState(.completed))
        func move(to root: String, running: Set<TaskID> = []) async throws -> [String?] {
            let left = try await fixture.store.updatePaths(for: root, running: running) { directory, owner in
                if directory?.hasPrefix("/") == true || owner != 1000 { return nil }
                return root + (directory.map { "/" + $0 } ?? "")
            }
            #expect(left.values.reduce(0, +) == running.count)
            return try ids.map { try fixture.store.record($0, owner: nil)?.path }
        }
        let moved = ["/new/a", "/new/sub/b", "/abs/c", "/old/d", "/old/e"]
        #expect(try await move(to: "/new", running: [ids[4]]) == moved)
        #expect(try await move(to: "/new") == moved.dropLast() + ["/new/e"])
        #expect(try await move(to: "/newer") == ["/newer/a", "/newer/sub/b", "/abs/c", "/old/d", "/newer/e"])
    }

    @Test("F85: downloads that have begun are counted by the directory in which their part files are")
    func begun() async throws {
        let fixture = try StoreFixture()
        var ids: [TaskID] = []
        for (name, place) in [("a", "/old"), ("b", "/old"), ("c", "/other"), ("d", "/new"), ("e", "/old")] {
            var task = NewTask.sample("https://example.org/" + name)
            task.path = place + "/" + name
            ids.append(try #require(try await fixture.add(task).first))
        }
        for id in [ids[0], ids[2], ids[3]] { try await fixture.conclude(id, .inState(.paused)) }
        let left = try await fixture.store.updatePaths(for: "new", running: [ids[1]]) { _, _ in "/new" }
        #expect(left == ["/old": 2, "/other": 1])
        let paths = try ids.map { try fixture.store.record($0, owner: nil)?.path }
        #expect(paths == ["/new/a", "/old/b", "/new/c", "/new/d", "/new/e"])
    }
}
