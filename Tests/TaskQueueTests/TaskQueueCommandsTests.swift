import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Commands")
struct TaskQueueCommandsTests {
    private let body = Resource(size: 16_000_000)

    /// Creates a server whose first response becomes slow after 1,000,000 bytes, and whose next is as fast as possible.
    private func server() throws -> ScriptedServer {
        try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
    }

    private func checkResumed(_ status: TaskStatus, _ fixture: QueueFixture, _ server: ScriptedServer) {
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
        #expect(status.bytesFetched - body.size < 200_000, "what was there was not fetched again")
        #expect(server.requests(for: "/a").count == 2)
        #expect(server.requests(for: "/a").last?.header("range") != nil)
        #expect(fixture.files == ["a"])
    }

    @Test("once pause returns nothing moves, and resume goes on from there")
    func pause() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        #expect(try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me).changed == 1)
        let paused = try await fixture.status(id)
        #expect((paused.state, paused.reason, paused.attempts) == (.paused, .user, 0))
        #expect(paused.bytesDone >= 500_000 && paused.bytesFetched >= paused.bytesDone)
        for _ in 0..<20 {
            try await Task.sleep(for: .milliseconds(5))
            #expect(try await fixture.status(id) == paused)
        }
        #expect(try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me).changed == 0)

        #expect(try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me).changed == 1)
        let status = try await fixture.completed(id)
        checkResumed(status, fixture, server)
        #expect(status.attempts == 1)
        #expect(
            try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me).refused.first?.transition?.state
                == .completed)
    }

    @Test("cancel keeps the part, and retry goes on with it")
    func cancel() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        #expect(try await fixture.queue.apply(.cancel, to: [id], by: QueueFixture.me).changed == 1)
        let cancelled = try await fixture.status(id)
        #expect(cancelled.state == .cancelled && cancelled.finishedAt != nil && fixture.parts.count == 1)
        #expect(try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me).refused.count == 1)
        #expect(try await fixture.queue.apply(.retry, to: [id], by: QueueFixture.me).changed == 1)
        checkResumed(try await fixture.completed(id), fixture, server)
    }

    /// Retries a completed task and waits for its second completion.
    private func retried(_ id: TaskID, _ fixture: QueueFixture) async throws -> TaskStatus {
        let fetched = try await fixture.completed(id).bytesFetched
        #expect(try await fixture.queue.apply(.retry, to: [id], by: QueueFixture.me).changed == 1)
        try await eventually(that: "the task completes again") {
            let status = try await fixture.status(id)
            return status.state == .completed && status.bytesFetched > fetched
        }
        return try await fixture.status(id)
    }

    @Test(
        "retry of a completed download replaces its file by a whole new one, whatever the policy",
        arguments: [ConflictPolicy.rename, .overwrite, .skip, .fail])
    func retryCompleted(policy: ConflictPolicy) async throws {
        let (old, new) = (Resource(size: 1_000), Resource(size: 2_000))
        let server = try ScriptedServer(["/a": [.serve(old), .serve(new)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) {
            $0.onConflict = policy
            $0.output = "a"
        }
        let status = try await retried(id, fixture)
        #expect(fixture.files == ["a"] && new.difference(fromFileAt: fixture.downloads + "/a") == nil)
        #expect(status.bytesDone == 2_000 && status.bytesFetched == 3_000)
    }

    @Test("a file that has taken the place of the downloaded one stays when the task is retried")
    func retryKeepsForeign() async throws {
        let (old, new, foreign) = (Resource(size: 1_000), Resource(size: 2_000), Resource(size: 3_000))
        let server = try ScriptedServer(["/a": [.serve(old), .serve(new)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        #expect(unlink(fixture.downloads + "/a") == 0)
        try foreign.write(to: fixture.downloads + "/a")
        _ = try await retried(id, fixture)
        #expect(fixture.files == ["a", "a (1)"])
        #expect(foreign.difference(fromFileAt: fixture.downloads + "/a") == nil)
    }

    @Test("a filter without states passes over completed tasks, and a URL with secrets has to be given again")
    func retryByFilter() async throws {
        let server = try ScriptedServer(["/a?token=secret": [.serve(Resource(size: 10))]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a?token=secret"))
        _ = try await fixture.completed(id)
        let queue = fixture.queue
        #expect(try await queue.apply(.retry, toTasksMatching: TaskFilter(), by: QueueFixture.me).changed == 0)
        let named = TaskFilter(states: [.completed])
        #expect(try await queue.apply(.retry, toTasksMatching: named, by: QueueFixture.me).changed == 1)
        let status = try await fixture.status(id)
        #expect(status.state == .paused && status.reason == .urlExpired)
        #expect(server.requests(for: "/a?token=secret").count == 1)
    }

    @Test("remove takes the task and its part away, even while it runs")
    func removeRunning() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 100_000)
        #expect(fixture.parts.count == 1)
        let outcome = try await fixture.queue.remove([id, TaskID(99)], deletesFiles: false, by: QueueFixture.me)
        #expect(outcome.changed == 1 && outcome.refused.map(\.id) == [TaskID(99)])
        #expect(fixture.files.isEmpty)
        #expect(try await fixture.queue.status(of: id, for: QueueFixture.me) == nil)
        #expect(try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me).refused.first?.transition == nil)
    }

    @Test("remove of a paused task takes its part away")
    func removePaused() async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 100_000)
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        #expect(fixture.parts.count == 1)
        _ = try await fixture.queue.remove([id], deletesFiles: false, by: QueueFixture.me)
        #expect(fixture.files.isEmpty)
    }

    @Test("a file that a task skipped is somebody else's and stays, even where files are to go")
    func keepsSkipped() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let fixture = try await QueueFixture()
        let foreign = fixture.downloads + "/mine"
        let descriptor = open(foreign, O_WRONLY | O_CREAT, 0o644)
        _ = write(descriptor, "mine", 4)
        close(descriptor)
        let id = try await fixture.add(server.url("/a")) { specification in
            specification.output = "mine"
            specification.onConflict = .skip
        }
        _ = try await fixture.completed(id)
        #expect(try await fixture.queue.remove([id], deletesFiles: true, by: QueueFixture.me).changed == 1)
        #expect(access(foreign, F_OK) == 0)
    }

    @Test("the finished file goes only where that is asked for", arguments: [nil, "x", "./x//y/"])
    func removeFinished(directory: String?) async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")]])
        let fixture = try await QueueFixture()
        let kept = try await fixture.add(server.url("/a")) { $0.directory = directory }
        let deleted = try await fixture.add(server.url("/b")) { $0.directory = directory }
        let keptPath = try await fixture.completed(kept).path
        _ = try await fixture.completed(deleted)
        #expect(try await fixture.queue.remove([kept], deletesFiles: false, by: QueueFixture.me).changed == 1)
        #expect(try await fixture.queue.remove([deleted], deletesFiles: true, by: QueueFixture.me).changed == 1)
        let names = fixture.files.filter { $0.hasSuffix("a") || $0.hasSuffix("b") }
        #expect(names.map { fixture.downloads + "/" + $0 } == [keptPath])
    }

    @Test("what has taken the finished file's name is not the task's to delete, a link no more than a file")
    func removeReplaced() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")]])
        let fixture = try await QueueFixture()
        var ids: [TaskID] = []
        for name in ["/a", "/b"] {
            let id = try await fixture.add(server.url(name))
            _ = try await fixture.completed(id)
            #expect(unlink(fixture.downloads + name) == 0)
            ids.append(id)
        }
        let file = fixture.downloads + "/a"
        try #require(close(open(file, O_CREAT | O_WRONLY, 0o644)) == 0)
        #expect(symlink("a", fixture.downloads + "/b") == 0)
        let outcome = try await fixture.queue.remove(ids, deletesFiles: true, by: QueueFixture.me)
        #expect(outcome.changed == 2 && outcome.refused.map(\.id) == ids)
        #expect(fixture.files.count == 2)
    }

    @Test("a filter's command finds what runs and what does not, and passes over what it cannot happen to")
    func filter() async throws {
        let server = try ScriptedServer(["/a": [.hang], "/c": [.status(200)]])
        let fixture = try await QueueFixture()
        let running = try await fixture.add(server.url("/a")) { $0.batch = "b" }
        let waiting = try await fixture.add(server.url("/a")) {
            $0.batch = "b"
            $0.startAt = 253_402_300_000_000
        }
        let elsewhere = try await fixture.add(server.url("/a")) { $0.batch = "c" }
        let done = try await fixture.add(server.url("/c")) { $0.batch = "b" }
        _ = try await fixture.completed(done)
        let outcome = try await fixture.queue.apply(
            .pause, toTasksMatching: TaskFilter(batch: "b"), by: QueueFixture.me)
        #expect(outcome.changed == 2 && outcome.refused.isEmpty)
        for id in [running, waiting] { #expect(try await fixture.status(id).state == .paused) }
        #expect(try await fixture.status(elsewhere).state == .active)
        let cancelled = try await fixture.queue.apply(
            .cancel, toTasksMatching: TaskFilter(states: [.active]), by: QueueFixture.me)
        #expect(cancelled.changed == 1)
        #expect(try await fixture.status(elsewhere).state == .cancelled)
        let removed = try await fixture.queue.remove(
            matching: TaskFilter(states: [.paused, .completed]), deletesFiles: true, by: QueueFixture.me)
        #expect(removed.changed == 3 && fixture.files.isEmpty)
    }
}
