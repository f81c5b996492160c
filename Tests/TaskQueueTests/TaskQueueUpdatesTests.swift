import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Changes to tasks")
struct TaskQueueUpdatesTests {
    private let body = Resource(size: 16_000_000)

    private func update(
        _ id: TaskID, _ fixture: QueueFixture, by caller: Caller = QueueFixture.me,
        _ make: (inout TaskChanges) -> Void
    ) async throws -> TaskStatus? {
        var changes = TaskChanges()
        make(&changes)
        return try await fixture.queue.update(id, by: changes, for: caller)
    }

    private func field(
        _ id: TaskID, _ fixture: QueueFixture, _ make: (inout TaskChanges) -> Void
    ) async throws -> String? {
        do {
            _ = try await update(id, fixture, make)
            return nil
        } catch let error as QueueError {
            guard case .field(let error) = error else { throw error }
            return error.field
        }
    }

    /// Returns a first response that becomes slow after 1,000,000 bytes, and a second one that is as fast as possible.
    private func slowThenFast() -> [ScriptedAnswer] {
        [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]
    }

    @Test("a task that runs goes on at once with what is asked now, its bytes kept and no attempt burned")
    func active() async throws {
        let server = try ScriptedServer(["/a": slowThenFast()])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        let parts = fixture.parts
        let told = try #require(
            try await update(id, fixture) {
                $0.headers = .set(["X-New: 1"])
                $0.output = .set("b")
                $0.limit = .set(1 << 30)
            })
        #expect([.queued, .active, .completed].contains(told.state) && told.name == "b")
        #expect(fixture.parts.isEmpty || fixture.parts == parts)
        let status = try await fixture.completed(id)
        #expect(server.requests().map { $0.header("x-new") } == [nil, "1"])
        #expect(server.requests().last?.header("range") != nil)
        #expect(status.bytesFetched - body.size < 200_000 && status.attempts == 1)
        #expect(status.path == fixture.downloads + "/b" && fixture.files == ["b"])
        #expect(body.difference(fromFileAt: fixture.downloads + "/b") == nil)
    }

    @Test("a task that runs keeps its slot while it changes, whoever waits for one")
    func keepsItsSlot() async throws {
        let server = try ScriptedServer([
            "/a": slowThenFast(), "/b": [.status(200, body: "b")], "/c": [.status(200, body: "c")],
        ])
        let fixture = try await QueueFixture { $0.activeTasks = 1 }
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        let others = [
            try await fixture.add(server.url("/b")) { $0.priority = .high }, try await fixture.add(server.url("/c")),
        ]
        _ = try await update(id, fixture) { $0.headers = .set(["X-New: 1"]) }
        for id in [id] + others { _ = try await fixture.completed(id) }
        #expect(server.requests().map(\.path) == ["/a", "/a", "/b", "/c"])
    }

    @Test("what cannot be taken, and a change of priority, leave what runs undisturbed")
    func undisturbed() async throws {
        let server = try ScriptedServer(["/a": slowThenFast()])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        #expect(try await field(id, fixture) { $0.url = "nowhere" } == "changes.url")
        #expect(try await field(id, fixture) { $0.url = "ftp://h/" } == "changes.url")
        #expect(try await field(id, fixture) { $0.output = .set("../a") } == "changes.output")
        #expect(try await field(id, fixture) { $0.limit = .set(0) } == "changes.limit")
        #expect(try await field(id, fixture) { $0.connections = .set(.exactly(99)) } == "changes.connections")
        #expect(try await field(id, fixture) { $0.headers = .set(["A: b", "x"]) } == "changes.headers[1]")
        #expect(try await field(id, fixture) { $0.startAt = .set(-1) } == "changes.startAt")
        #expect(try await field(id, fixture) { _ in } == "changes")
        #expect(try await update(id, fixture) { $0.url = server.url("/a") }?.state == .active)
        #expect(try await update(id, fixture) { $0.priority = .set(.high) }?.priority == .high)
        #expect(try await fixture.status(id).state == .active && server.requests().count == 1)
    }

    @Test("nobody changes another's task, and an administrator anyone's")
    func owner() async throws {
        let fixture = try await QueueFixture()
        let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        let stranger = Caller(uid: 1001, isAdministrator: false)
        #expect(try await update(id, fixture, by: stranger) { $0.limit = .set(5) } == nil)
        #expect(try await update(TaskID(99), fixture) { $0.limit = .set(5) } == nil)
        let status = try await update(id, fixture, by: QueueFixture.administrator) { $0.output = .set("b") }
        #expect(status?.owner == 1000 && status?.path == fixture.downloads + "/b" && status?.state == .paused)
    }

    @Test("what is completed is refused, with a word on why")
    func completed() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        let message = "task \(id) is completed; it can no longer be changed"
        await #expect(throws: QueueError.refused(.wrongState, message)) {
            try await update(id, fixture) { $0.output = .set("b") }
        }
        #expect(fixture.files == ["a"])
    }

    @Test("a task that has ended has no place to move to, and is refused for its state")
    func moveOfEnded() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        let paused = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        let message = "task \(id) is completed; only a task that has not ended can be moved"
        for (moved, placement) in [(id, TaskPlacement.first), (paused, .before(id))] {
            await #expect(throws: QueueError.refused(.wrongState, message)) {
                try await fixture.queue.move(moved, placement, by: QueueFixture.me)
            }
        }
    }

    @Test("a change that comes while the file gets its name is refused, or names it; never is it lost")
    func atTheEnd() async throws {
        let server = try ScriptedServer(["/hang": [.hang], "/a": [.status(200, body: "text")]])
        let fixture = try await QueueFixture()
        // While another task runs, a finished file waits a moment for others before it is synced and named.
        _ = try await fixture.add(server.url("/hang"))
        for number in 0..<8 {
            let id = try await fixture.add(server.url("/a")) { $0.output = "old\(number)" }
            try await eventually(that: "every byte is here", every: .milliseconds(1)) {
                let status = try await fixture.status(id)
                return status.phase == .publishing || status.state == .completed
            }
            var isRefused = false
            do {
                _ = try await update(id, fixture) { $0.output = .set("new\(number)") }
            } catch QueueError.refused {
                isRefused = true
            }
            let name = isRefused ? "old\(number)" : "new\(number)"
            let status = try await fixture.completed(id)
            #expect(status.path == fixture.downloads + "/" + name && fixture.files.contains(name))
            #expect(!fixture.files.contains(isRefused ? "new\(number)" : "old\(number)"))
        }
    }

    @Test("changes, pauses and resumptions all at once end in a whole file")
    func storm() async throws {
        let server = try ScriptedServer(["/a": [.drip(body, after: 0, bytesPerSecond: 20_000_000)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 100_000)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<24 {
                group.addTask {
                    if number % 3 == 0 {
                        _ = try? await fixture.queue.apply(
                            number % 2 == 0 ? .pause : .resume, to: [id], by: QueueFixture.me)
                    } else {
                        var changes = TaskChanges()
                        changes.limit = .set(Int64(number) << 24)
                        _ = try? await fixture.queue.update(id, by: changes, for: QueueFixture.me)
                    }
                }
            }
        }
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        let status = try await fixture.completed(id)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil && fixture.files == ["a"])
        #expect(status.bytesFetched < body.size * 2, "\(status.bytesFetched)")
    }

    @Test("a failed task goes on by itself with another URL")
    func failed() async throws {
        let server = try ScriptedServer(["/b": [.status(200, body: "b")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        #expect(try await fixture.status(id, once: [.failed]).error?.code == .http(404))
        #expect(try await update(id, fixture) { $0.limit = .set(1 << 20) }?.state == .failed)
        _ = try await update(id, fixture) { $0.url = server.url("/b") }
        let status = try await fixture.completed(id)
        #expect(status.error == nil && fixture.files == ["b"] && status.url == server.url("/b"))
    }

    @Test("a time to start stops what runs until then, and taking it back lets it go on")
    func startAt() async throws {
        let server = try ScriptedServer(["/a": slowThenFast()])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        let later: Milliseconds = 253_402_300_000_000
        let waiting = try await update(id, fixture) { $0.startAt = .set(later) }
        #expect(waiting?.state == .waiting && waiting?.reason == .scheduled && waiting?.notBefore == later)
        #expect(waiting.map { $0.bytesDone >= 500_000 && $0.attempts == 0 } == true)
        #expect(try await fixture.status(id) == waiting)
        _ = try await update(id, fixture) { $0.startAt = .takeBack }
        let status = try await fixture.completed(id)
        #expect(status.bytesFetched - body.size < 200_000)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
    }

    @Test("another priority changes who is next")
    func priority() async throws {
        let server = try ScriptedServer([
            "/hang": [.hang], "/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")],
        ])
        let fixture = try await QueueFixture { $0.activeTasks = 1 }
        let first = try await fixture.add(server.url("/hang"))
        try await eventually(that: "the first runs") { !server.requests().isEmpty }
        let ids = [try await fixture.add(server.url("/a")), try await fixture.add(server.url("/b"))]
        _ = try await update(ids[1], fixture) { $0.priority = .set(.high) }
        _ = try await fixture.queue.apply(.cancel, to: [first], by: QueueFixture.me)
        for id in ids { _ = try await fixture.completed(id) }
        #expect(server.requests().map(\.path) == ["/hang", "/b", "/a"])
    }

    @Test("an upload takes what applies to it")
    func upload() async throws {
        let server = try ScriptedServer(["/new": [.status(201)]])
        let fixture = try await QueueFixture()
        let source = try fixture.directory.write("text", to: "source")
        let id = try await fixture.add(server.url("/old"), by: QueueFixture.administrator) {
            $0.kind = .upload
            $0.file = source
            $0.paused = true
        }
        func field(_ make: (inout TaskChanges) -> Void) async throws -> String? {
            var changes = TaskChanges()
            make(&changes)
            do throws(QueueError) {
                _ = try await fixture.queue.update(id, by: changes, for: QueueFixture.administrator)
                return nil
            } catch {
                guard case .field(let error) = error else { throw error }
                return error.field
            }
        }
        #expect(try await field { $0.output = .set("a") } == "changes.output")
        #expect(try await field { $0.connections = .set(.auto) } == "changes.connections")
        #expect(try await field { $0.url = server.url("/new/?token=1") } == "changes.url")
        #expect(try await field { $0.url = server.url("/new/") } == nil)
        #expect(try await fixture.status(id).url == server.url("/new/source"), "the file's name is appended")
        #expect(
            try await field {
                $0.url = server.url("/new")
                $0.limit = .set(1 << 20)
                $0.priority = .set(.low)
                $0.headers = .set(["X-New: 1"])
            } == nil)
        #expect(try await fixture.status(id).path == source)
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.administrator)
        _ = try await fixture.completed(id)
        #expect(server.requests(for: "/new").first?.header("x-new") == "1")
    }
}
