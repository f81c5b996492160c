import Crypto
import FoundationEssentials
import TaskModel
import TaskStore
import TestSupport
import Testing

@testable import TaskQueue

@Suite("The queue")
struct TaskQueueTests {
    private let body = Resource(size: 300_000)

    @Test("a download completes with exactly the bytes that the server has")
    func download() async throws {
        let server = try ScriptedServer(["/d/a.bin": [.serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/d/a.bin"))
        let status = try await fixture.completed(id)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a.bin") == nil)
        #expect(status.path == fixture.downloads + "/a.bin" && status.name == "a.bin")
        #expect((status.bytesDone, status.bytesTotal, status.bytesFetched) == (300_000, 300_000, 300_000))
        #expect(status.attempts == 1 && status.error == nil && status.state == .completed && !status.verified)
        #expect(status.startedAt != nil && status.finishedAt != nil && status.connections == 0)
        #expect(fixture.files == ["a.bin"])
        let request = try #require(server.requests().first)
        #expect(request.header("user-agent") == "dld-test" && request.header("accept") == "*/*")
    }

    @Test("what a person says of the request is sent")
    func request() async throws {
        let challenge = ScriptedAnswer.status(401, headers: ["WWW-Authenticate: Basic realm=\"r\""])
        let server = try ScriptedServer(["/a?token=t": [challenge, .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add("http://me:pass@127.0.0.1:\(server.port)/a?token=t") { task in
            task.headers = ["X-A: b: c", "Accept: text/x"]
            task.userAgent = "mine"
            task.referer = "http://r/"
            task.output = "named"
            task.directory = "deep/er"
        }
        let status = try await fixture.completed(id)
        #expect(server.requests().first?.header("authorization") == nil)
        let sent = try #require(server.requests().last)
        #expect(sent.header("x-a") == "b: c" && sent.header("accept") == "text/x")
        #expect(sent.header("user-agent") == "mine" && sent.header("referer") == "http://r/")
        #expect(sent.header("authorization") == "Basic " + Data("me:pass".utf8).base64EncodedString())
        #expect(status.url == server.url("/a?token=REDACTED"))
        #expect(fixture.files.contains("deep/er/named"))
    }

    @Test("a checksum is verified, and a wrong one fails the task without a file")
    func checksum() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "hello")], "/b": [.status(200, body: "hello")]])
        let fixture = try await QueueFixture()
        let right = try await fixture.add(server.url("/a")) { $0.checksum = "md5:5d41402abc4b2a76b9719d911017c592" }
        #expect(try await fixture.completed(right).verified)
        let wrong = try await fixture.add(server.url("/b")) { $0.checksum = "md5:5d41402abc4b2a76b9719d911017c593" }
        let status = try await fixture.status(wrong, once: [.failed])
        #expect(status.error?.code == .checksumMismatch && !status.verified)
        #expect(!fixture.files.contains("b"))
    }

    @Test("F47: a wrong byte in what was cut once is fetched again all the same")
    func mismatchAfterCut() async throws {
        let resource = Resource(size: 2_000_000)
        var wrong = resource
        wrong.wrongByte = 1000
        let server = try ScriptedServer(["/a": [.serveThenCut(wrong, after: 1_000_000), .serve(resource)]])
        let fixture = try await QueueFixture()
        let hex = Insecure.MD5.hash(data: resource.bytes)
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let id = try await fixture.add(server.url("/a")) { $0.checksum = "md5:" + hex }
        #expect(try await fixture.completed(id).verified)
        #expect(server.requests().map { $0.header("range") != nil } == [false, true, false])
    }

    @Test("an upload sends the file")
    func upload() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let fixture = try await QueueFixture()
        let source = fixture.directory.file("source")
        try body.write(to: source)
        let id = try await fixture.add(server.url("/in"), by: QueueFixture.administrator) { task in
            task.kind = .upload
            task.file = source
            task.contentType = "a/b"
        }
        let status = try await fixture.completed(id)
        let sent = try #require(server.requests().first)
        #expect(sent.method == "PUT" && sent.header("content-type") == "a/b" && sent.body == body.bytes)
        #expect((status.bytesDone, status.bytesFetched, status.path) == (300_000, 300_000, source))
    }

    @Test("an upload that the server never takes is not sent for ever")
    func refusedUpload() async throws {
        let server = try ScriptedServer(["/in": [.status(503)]])
        let fixture = try await QueueFixture()
        let source = try fixture.directory.write("content", to: "source")
        let id = try await fixture.add(server.url("/in"), by: QueueFixture.administrator) { task in
            task.kind = .upload
            task.file = source
        }
        let status = try await fixture.status(id, once: [.failed])
        #expect(status.attempts == 3 && server.requests().count == 3)
    }

    @Test("a second task with a known key is the first")
    func keys() async throws {
        let server = try ScriptedServer(["/a": [.serve(body)]])
        let fixture = try await QueueFixture()
        let first = try await fixture.add(server.url("/a")) { $0.key = "k" }
        #expect(try await fixture.add(server.url("/other")) { $0.key = "k" } == first)
        _ = try await fixture.completed(first)
        #expect(try await fixture.add(server.url("/a")) { $0.key = "k" } == first)
        var tasks = [TaskSpecification(url: server.url("/a")), TaskSpecification(url: server.url("/a"))]
        tasks[0].key = "k"
        tasks[1].paused = true
        let result = try await fixture.queue.addOrFind(tasks, by: QueueFixture.me)
        #expect(result.ids.count == 2 && result.found == [first] && result.ids.first == first)
        let other = Caller(uid: 1001, isAdministrator: false)
        #expect(try await fixture.add(server.url("/b"), by: other) { $0.key = "k" } != first)
        #expect(server.requests(for: "/a").count == 1)
    }

    @Test("one wrong task refuses all, with its place and field")
    func atomic() async throws {
        let fixture = try await QueueFixture()
        var wrong = TaskSpecification(url: "http://h/a")
        wrong.directory = "/etc"
        let tasks = [TaskSpecification(url: "http://h/a"), wrong]
        await #expect {
            try await fixture.queue.add(tasks, by: QueueFixture.me)
        } throws: { error in
            guard case .field(let error)? = error as? QueueError else { return false }
            return error.field == "tasks[1].directory" && error.code == .pathNotAllowed
        }
        #expect(try await fixture.queue.counts(for: QueueFixture.me).values.allSatisfy { $0 == 0 })
    }

    @Test("a queue that is let go of gives back its descriptors, whether or not it was stopped")
    func descriptors() async throws {
        func open() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
        _ = try await QueueFixture()
        let before = try open()
        for _ in 0..<10 { _ = try await QueueFixture() }
        // The descriptors of the last one may still be closing.
        try await eventually(that: "they are closed") { try open() < before + 10 }
    }

    @Test("A31: an owner has no more tasks than allowed, and has room again once some are removed")
    func quota() async throws {
        let fixture = try await QueueFixture { $0.quota.tasksPerOwner = 2 }
        let tasks = Array(repeating: TaskSpecification(url: "http://127.0.0.1:9/a"), count: 2).map { task in
            var task = task
            task.paused = true
            return task
        }
        let ids = try await fixture.queue.add(tasks, by: QueueFixture.me)
        await #expect {
            try await fixture.add("http://h/a")
        } throws: {
            ($0 as? QueueError)?.refusal?.code == .quota
        }
        _ = try await fixture.add("http://h/a", by: Caller(uid: 1001, isAdministrator: false)) { $0.paused = true }
        _ = try await fixture.queue.remove([ids[0]], deletesFiles: false, by: QueueFixture.me)
        _ = try await fixture.add("http://h/a") { $0.paused = true }
    }

    @Test("A31: a user's records are as large as allowed, and neither a new task nor a change makes them larger")
    func recordQuota() async throws {
        let fixture = try await QueueFixture { $0.quota.recordsPerOwner = 2_000 }
        let id = try await fixture.add("http://h/a") { $0.paused = true }
        let large = "X: " + String(repeating: "y", count: 2_000)
        func expectRefusal(_ body: () async throws -> Void) async {
            await #expect {
                try await body()
            } throws: {
                let refusal = ($0 as? QueueError)?.refusal
                return refusal?.code == .quota && refusal?.message.contains("limits.records-per-owner") == true
            }
        }
        await expectRefusal { _ = try await fixture.add("http://h/b") { $0.headers = [large] } }
        var changes = TaskChanges()
        changes.headers = .set([large])
        await expectRefusal { _ = try await fixture.queue.update(id, by: changes, for: QueueFixture.me) }
        await expectRefusal { _ = try await fixture.queue.update([id], by: changes, for: QueueFixture.administrator) }
        var entry = TaskSpecification(url: "http://h/c")
        entry.headers = [large]
        await expectRefusal { _ = try await fixture.queue.apply([entry], batch: "b", by: QueueFixture.me) }
        #expect(try await fixture.status(id).state == .paused)
        #expect(try fixture.store.recordBytes(of: 1000) < 500)
        _ = try await fixture.add("http://h/d") { $0.paused = true }
    }

    @Test("A14, A35: another user's tasks are not there")
    func owners() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        let fixture = try await QueueFixture()
        let other = Caller(uid: 1001, isAdministrator: false)
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 0)
        #expect(try await fixture.queue.status(of: id, for: other) == nil)
        #expect(try await fixture.queue.page(TaskFilter(), after: nil, limit: 9, newest: nil, for: other).isEmpty)
        #expect(
            try await fixture.queue.page(TaskFilter(owner: 1000), after: nil, limit: 9, newest: nil, for: other).isEmpty
        )
        #expect(try await fixture.queue.counts(for: other)[.active] == 0)
        for event in [TaskLifecycle.Event.pause, .resume, .cancel, .retry] {
            let outcome = try await fixture.queue.apply(event, to: [id], by: other)
            #expect(outcome.changed == 0 && outcome.refused.map(\.id) == [id])
            #expect(outcome.refused.first?.transition == nil)
            #expect(try await fixture.queue.apply(event, toTasksMatching: TaskFilter(), by: other).changed == 0)
        }
        #expect(try await fixture.queue.remove([id], deletesFiles: true, by: other).changed == 0)
        #expect(try await fixture.queue.remove(matching: TaskFilter(), deletesFiles: true, by: other).changed == 0)
        #expect(try await fixture.status(id).state == .active)
        #expect(try await fixture.queue.counts(for: QueueFixture.administrator)[.active] == 1)
        try await eventually(that: "its one request comes", every: .milliseconds(2)) { server.requests().count == 1 }
    }

    @Test("what runs is told with what is known of it, and found by its state")
    func running() async throws {
        let body = Resource(size: 16_000_000)
        let server = try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.batch = "b" }
        let paused = try await fixture.add(server.url("/b")) {
            $0.paused = true
            $0.batch = "b"
        }
        try await fixture.running(id, bytes: 1)
        let status = try await fixture.status(id)
        #expect(status.phase == .transferring && status.bytesTotal == body.size && status.connections == 1)
        #expect(status.attempts == 1 && status.rate != nil)
        let active = try await fixture.queue.page(
            TaskFilter(states: [.active]), after: nil, limit: 9, newest: nil, for: QueueFixture.me)
        #expect(active.map(\.id) == [id])
        let all = try await fixture.queue.page(TaskFilter(), after: nil, limit: 9, newest: 1, for: QueueFixture.me)
        #expect(all.map(\.id) == [paused])
        let counts = try await fixture.queue.counts(for: QueueFixture.me)
        #expect((counts[.active], counts[.paused], counts[.queued], counts[.failed]) == (1, 1, 0, 0))
    }
}
