import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Changes to several tasks, and to where files come from")
struct TaskQueueSelectionUpdatesTests {
    private let body = Resource(size: 4_000_000)

    private func changes(_ make: (inout TaskChanges) -> Void) -> TaskChanges {
        var changes = TaskChanges()
        make(&changes)
        return changes
    }

    /// Returns the digest of ``body``.
    private func sum(_ fixture: QueueFixture) async throws -> String {
        let path = fixture.directory.file("body")
        try body.write(to: path)
        return "sha256:" + (try await run(["sha256sum", path])).output.prefix(64)
    }

    private func server() throws -> ScriptedServer {
        try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
    }

    @Test("several tasks change at once; each that cannot is named, and those that were so already are not counted")
    func several() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let fixture = try await QueueFixture()
        let done = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(done)
        var ids: [TaskID] = []
        for _ in 0..<3 { ids.append(try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }) }
        let limit = changes { $0.limit = .set(5) }
        _ = try await fixture.queue.update(ids[0], by: limit, for: QueueFixture.me)
        let outcome = try await fixture.queue.update(ids + [done, TaskID(99)], by: limit, for: QueueFixture.me)
        #expect(outcome.changed == 2 && outcome.refused.map(\.id) == [done, TaskID(99)])
        let filter = TaskFilter(states: [.paused, .completed])
        let matched = try await fixture.queue.update(
            matching: filter, by: changes { $0.directory = .set("isos") }, for: QueueFixture.me)
        #expect(matched.changed == 3 && matched.refused.isEmpty, "what is completed is passed over")
        for id in ids { #expect(try await fixture.status(id).path == fixture.downloads + "/isos/a") }
        let stranger = Caller(uid: 1001, isAdministrator: false)
        #expect(try await fixture.queue.update(matching: TaskFilter(), by: limit, for: stranger).changed == 0)
    }

    @Test("an upload that a filter finds says that it has no directory, and the downloads change")
    func mixed() async throws {
        let fixture = try await QueueFixture()
        let source = try fixture.directory.write("text", to: "source")
        let upload = try await fixture.add("http://127.0.0.1:9/u", by: QueueFixture.administrator) {
            ($0.kind, $0.file, $0.paused) = (.upload, source, true)
        }
        _ = try await fixture.add("http://127.0.0.1:9/a", by: QueueFixture.administrator) { $0.paused = true }
        let outcome = try await fixture.queue.update(
            matching: TaskFilter(), by: changes { $0.directory = .set("isos") }, for: QueueFixture.administrator)
        #expect(outcome.changed == 1 && outcome.refused.map(\.id) == [upload])
    }

    @Test("what no task can ask for, and what one task alone can have, is refused once for all of them")
    func refusedAsAWhole() async throws {
        let fixture = try await QueueFixture()
        let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        for (make, field) in [
            ({ $0.url = "http://h/b" }, "url"), ({ $0.output = .set("b") }, "output"),
            ({ $0.directory = .set("/etc") }, "directory"), ({ $0.limit = .set(0) }, "limit"), ({ _ in }, ""),
        ] as [((inout TaskChanges) -> Void, String)] {
            let refusal = try await fault {
                try await fixture.queue.update(matching: TaskFilter(), by: changes(make), for: QueueFixture.me)
            }
            #expect(refusal?.field == (field.isEmpty ? "changes" : "changes." + field))
        }
        let one = try await fixture.queue.update([id], by: changes { $0.output = .set("b") }, for: QueueFixture.me)
        #expect(one.changed == 1)
    }

    @Test("a digest that comes while bytes are here counts for all of them", arguments: [true, false])
    func checksum(isRight: Bool) async throws {
        let server = try server()
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        let right = try await sum(fixture)
        let digest = isRight ? right : "sha256:" + String(repeating: "0", count: 64)
        _ = try await fixture.queue.update(id, by: changes { $0.checksum = .set(digest) }, for: QueueFixture.me)
        let status = try await fixture.status(id, once: [.completed, .failed])
        if isRight {
            #expect(status.state == .completed && status.verified && status.bytesFetched - body.size < 200_000)
            #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
            return
        }
        #expect(status.state == .failed && status.error?.code == .checksumMismatch && !fixture.files.contains("a"))
        // With the right digest the task resumes and completes.
        _ = try await fixture.queue.update(id, by: changes { $0.checksum = .set(right) }, for: QueueFixture.me)
        #expect(try await fixture.completed(id).verified)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
    }

    @Test("a mirror that a running task is given stands in at once, and a failed task goes on with one")
    func mirrors() async throws {
        let good = try ScriptedServer(["/m": [.serve(body)]])
        let slow = try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .status(404)]])
        let fixture = try await QueueFixture()
        let sum = try await sum(fixture)
        let id = try await fixture.add(slow.url("/a")) { $0.checksum = sum }
        try await fixture.running(id, bytes: 500_000)
        _ = try await fixture.queue.update(
            id, by: changes { $0.mirrors = .set([good.url("/m")]) }, for: QueueFixture.me)
        let status = try await fixture.completed(id)
        #expect(status.verified && body.difference(fromFileAt: fixture.downloads + "/a") == nil)
        let failed = try await fixture.add(slow.url("/none"))
        #expect(try await fixture.status(failed, once: [.failed]).error?.code == .http(404))
        _ = try await fixture.queue.update(
            failed, by: changes { $0.mirrors = .set([good.url("/m")]) }, for: QueueFixture.me)
        let path = try #require(try await fixture.completed(failed).path)
        #expect(body.difference(fromFileAt: path) == nil)
    }

    @Test("a user and a password let in a task that the server refused")
    func login() async throws {
        let refusal = ScriptedAnswer.status(401, headers: ["WWW-Authenticate: Basic realm=\"r\""])
        // The password is sent only once the server asks for it.
        let server = try ScriptedServer(["/a": [refusal, refusal, .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        #expect(try await fixture.status(id, once: [.paused]).reason == .auth)
        _ = try await fixture.queue.update(
            id, by: changes { ($0.user, $0.password) = (.set("me"), .set("geheim")) }, for: QueueFixture.me)
        _ = try await fixture.completed(id)
        #expect(server.requests().last?.header("authorization") == "Basic bWU6Z2VoZWlt")
    }

    @Test("a pause holds a task that waits for a login, whatever login it gets, and a resume tells of the need again")
    func pauseOfRefused() async throws {
        let refusal = ScriptedAnswer.status(401, headers: ["WWW-Authenticate: Basic realm=\"r\""])
        let server = try ScriptedServer(["/a": [refusal, refusal, .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        #expect(try await fixture.status(id, once: [.paused]).reason == .auth)
        #expect(try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me).changed == 1)
        #expect(try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me).changed == 0)
        #expect(try await fixture.status(id).reason == .user)
        let last = try fixture.queue.lastEvent()
        #expect(try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me).changed == 1)
        let told = try await fixture.status(id, once: [.paused], after: last)
        #expect(told.reason == .auth && told.error?.code == .http(401))
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        _ = try await fixture.queue.update(
            id, by: changes { ($0.user, $0.password) = (.set("me"), .set("geheim")) }, for: QueueFixture.me)
        let held = try await fixture.status(id)
        #expect(held.state == .paused && held.reason == .user && server.requests().count == 2)
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        _ = try await fixture.completed(id)
        #expect(server.requests().count == 3)
    }
}
