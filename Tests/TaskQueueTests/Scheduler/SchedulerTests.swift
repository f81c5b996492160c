import Glibc
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("The scheduler")
struct SchedulerTests {
    private let body = Resource(size: 16_000_000)

    @Test("a server's fault is tried again until it is over")
    func retry() async throws {
        let body = Resource(size: 300_000)
        let server = try ScriptedServer(["/a": [.status(500), .status(503), .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        let status = try await fixture.completed(id)
        #expect(status.attempts == 3 && status.error == nil)
        #expect(server.requests().count == 3)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
        let events = try fixture.store.events(after: 0, limit: 99).events
        #expect(events.map(\.type) == [.added, .started, .waiting, .started, .waiting, .started, .completed])
        #expect(events[2].error?.code == .http(500) && events[2].reason == .retry)
    }

    @Test("attempts come to an end, and a person's retry begins to count again")
    func attempts() async throws {
        let server = try ScriptedServer(["/a": [.status(500), .status(500), .status(500), .status(500), .status(200)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        let failed = try await fixture.status(id, once: [.failed])
        #expect(failed.attempts == 3 && failed.error?.httpStatus == 500 && failed.finishedAt != nil)
        _ = try await fixture.queue.apply(.retry, to: [id], by: QueueFixture.me)
        let status = try await fixture.completed(id)
        #expect(status.attempts == 5 && server.requests().count == 5)
    }

    @Test("a server that breaks off at the same place for ever is given up")
    func noProgress() async throws {
        var body = Resource(size: 400_000)
        body.entityTag = nil
        // The server supports no ranges: each attempt begins anew and gets as far as the one before.
        let server = try ScriptedServer(["/a": [.claim(body, length: 500_000)]])
        let fixture = try await QueueFixture { $0.retry.attempts = 2 }
        let id = try await fixture.add(server.url("/a"))
        let failed = try await fixture.status(id, once: [.failed])
        // Every second response has to confirm the one before it.
        #expect([.truncated, .remoteChanged].contains(failed.error?.code))
        #expect(server.requests().count <= 6)
    }

    @Test("a file that begins anew with each attempt ends as failed, even where each gets further than the last")
    func anewAndFurther() async throws {
        let answers = (1...40).map { ScriptedAnswer.claim(Resource(size: Int64($0) * 10_000), length: 500_000) }
        let server = try ScriptedServer(["/a": answers])
        let fixture = try await QueueFixture { $0.retry.attempts = 3 }
        let id = try await fixture.add(server.url("/a"))
        let failed = try await fixture.status(id, once: [.failed])
        // Every second response has to confirm the one before it.
        #expect([.truncated, .remoteChanged].contains(failed.error?.code))
        #expect(server.requests().count <= 12)
    }

    @Test("a connection that is cut while it brings something is taken up again at once")
    func cut() async throws {
        let body = Resource(size: 2_000_000)
        let server = try ScriptedServer(["/a": [.serveThenCut(body, after: 1_000_000), .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        let status = try await fixture.completed(id)
        #expect(status.attempts == 2 && server.requests().count == 2)
        #expect(status.bytesFetched - body.size < 200_000)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
        #expect(try fixture.store.events(after: 0, limit: 99).events.map(\.type) == [.added, .started, .completed])
    }

    @Test("what is not there is asked for once")
    func notFound() async throws {
        let server = try ScriptedServer([:])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        let status = try await fixture.status(id, once: [.failed])
        #expect(status.error?.code == .http(404) && status.error?.httpStatus == 404 && status.attempts == 1)
        #expect(server.requests().count == 1)
    }

    @Test("a task for later waits for its moment, and starts before only where that is said")
    func later() async throws {
        let server = try ScriptedServer(["/a": [.status(200)], "/b": [.status(200)]])
        let manual = ManualClock()
        let fixture = try await QueueFixture(clock: manual.clock)
        let startAt = manual.now + 7_200_000
        let id = try await fixture.add(server.url("/a")) { $0.startAt = startAt }
        let other = try await fixture.add(server.url("/b")) { $0.startAt = startAt }
        let waiting = try await fixture.status(id)
        #expect((waiting.state, waiting.reason, waiting.notBefore) == (.waiting, .scheduled, startAt))
        _ = try await fixture.queue.apply(.resumeNow, to: [other], by: QueueFixture.me)
        _ = try await fixture.completed(other)
        #expect(server.requests(for: "/a").isEmpty)
        manual.advance(by: 7_199_000)
        #expect(try await fixture.status(id).state == .waiting)
        try await eventually(that: "the task starts", every: .milliseconds(2)) {
            manual.advance(by: 1_000)
            return try await fixture.status(id).state == .completed
        }
        #expect(try await fixture.status(id).startedAt.map { $0 >= startAt } == true)
    }

    @Test("a store that cannot be read for a while is asked again, and nothing waits for ever")
    func unreadableStore() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")]])
        let manual = ManualClock()
        let fixture = try await QueueFixture(clock: manual.clock)
        let id = try await fixture.add(server.url("/a")) { $0.startAt = manual.now + 60_000 }
        let next = try await fixture.add(server.url("/b")) { $0.afterTask = id }
        func rename(_ name: String, to other: String) async throws {
            let database = fixture.directory.path + "/state/dld.db"
            let outcome = try await run(["sqlite3", database, "ALTER TABLE \(name) RENAME TO \(other)"])
            try #require(outcome.succeeded, "\(outcome.error)")
        }
        try await rename("task", to: "hidden")
        for _ in 0..<20 {
            manual.advance(by: 10_000)
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(server.requests().isEmpty)
        try await rename("hidden", to: "task")
        try await eventually(that: "both complete", within: .seconds(20), every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.status(next).state == .completed
        }
        #expect(try await fixture.status(id).state == .completed)
    }

    @Test("a task whose bytes move keeps its slot, however long it takes: those of other hosts wait for it")
    func movingTask() async throws {
        let body = Resource(size: 8_000_000)
        let server = try ScriptedServer(["/a": [.drip(body, bytesPerSecond: 2 << 20)]])
        let other = try ScriptedServer(["/b": [.status(200, body: "b")]])
        let manual = ManualClock()
        let fixture = try await QueueFixture(clock: manual.clock) { $0.activeTasks = 1 }
        let id = try await fixture.add(server.url("/a"))
        let next = try await fixture.add(other.url("/b"))
        var fetched: Int64 = 0
        // Four steps of the clock, each with received bytes, between two checks of the scheduler.
        for _ in 0..<24 {
            try await eventually(that: "more bytes come", every: .milliseconds(2)) {
                try await fixture.status(id).bytesFetched > fetched
            }
            fetched = try await fixture.status(id).bytesFetched
            manual.advance(by: 250)
        }
        #expect(try await fixture.status(next).state == .queued)
        #expect(other.requests().isEmpty)
    }

    @Test("two hundred tasks of a host that never answers hold up nobody else", arguments: [4, 16])
    func silentHost(connectionsPerHost: Int) async throws {
        let silent = try ScriptedServer(["/a": [.hang]])
        let server = try ScriptedServer(["/b": [.status(200, body: "b")]])
        let manual = ManualClock()
        let fixture = try await QueueFixture(clock: manual.clock) { $0.connectionsPerHost = connectionsPerHost }
        let tasks = Array(repeating: TaskSpecification(url: silent.url("/a")), count: 200)
        _ = try await fixture.queue.add(tasks, by: QueueFixture.me)
        let id = try await fixture.add(server.url("/b"))
        // Each step is one second of the queue's clock.
        try await eventually(that: "the other host's task completes", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.status(id).state == .completed
        }
        #expect(manual.now - ManualClock().now < 1_000_000)
        #expect(silent.requests().count <= connectionsPerHost)
    }

    @Test("uploads that are taken and never answered hold up nobody else, nor do several such hosts")
    func silentUploads() async throws {
        let silent = try (0..<5).map { _ in try ScriptedServer(["/a": [.hang]]) }
        let server = try ScriptedServer(["/b": [.status(200, body: "b")]])
        let manual = ManualClock()
        let fixture = try await QueueFixture(clock: manual.clock)
        let source = try fixture.directory.write("source", to: "source")
        for server in silent {
            var upload = TaskSpecification(url: server.url("/a"))
            upload.kind = .upload
            upload.file = source
            _ = try await fixture.queue.add(Array(repeating: upload, count: 40), by: QueueFixture.administrator)
        }
        let id = try await fixture.add(server.url("/b"))
        try await eventually(that: "the other host's task completes", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.status(id).state == .completed
        }
        #expect(manual.now - ManualClock().now < 1_000_000)
    }

    @Test("limits on tasks and on a host's connections hold")
    func limits() async throws {
        let first = try CountingServer(expected: 3)
        let second = try CountingServer(expected: 2)
        defer {
            first.stop()
            second.stop()
        }
        // The clock does not advance, so that no slots are lent.
        let fixture = try await QueueFixture(clock: ManualClock().clock) { settings in
            settings.activeTasks = 5
            settings.connectionsPerHost = 3
        }
        var ids: [TaskID] = []
        for number in 0..<20 {
            for port in [first.port, second.port] {
                ids.append(try await fixture.add("http://127.0.0.1:\(port)/\(number)") { $0.directory = "\(port)" })
            }
        }
        for id in ids { #expect(try await fixture.completed(id).bytesDone == 2) }
        #expect(first.peak == 3)
        #expect((2...3).contains(second.peak))
    }

    @Test("no more run than there are slots, and an ended one makes room")
    func slots() async throws {
        let server = try ScriptedServer(["/a": [.hang]])
        let other = try ScriptedServer(["/a": [.hang]])
        let fixture = try await QueueFixture(clock: ManualClock().clock) { settings in
            settings.activeTasks = 4
            settings.connectionsPerHost = 3
        }
        let tasks = (0..<20).map { TaskSpecification(url: ($0 < 10 ? server : other).url("/a")) }
        let ids = try await fixture.queue.add(tasks, by: QueueFixture.me)
        try await eventually(that: "four ask", every: .milliseconds(2)) {
            server.requests().count == 2 && other.requests().count == 2
        }
        _ = try await fixture.queue.apply(.cancel, to: [ids[0]], by: QueueFixture.me)
        try await eventually(that: "a fifth asks", every: .milliseconds(2)) {
            server.requests().count + other.requests().count == 5
        }
        #expect(try await fixture.queue.counts(for: QueueFixture.me)[.active] == 4)
    }

    @Test("the higher priority goes first, then the older")
    func order() async throws {
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: ["/a", "/b", "/c", "/d"].map { ($0, [ScriptedAnswer.status(200)]) }))
        let fixture = try await QueueFixture { $0.activeTasks = 1 }
        var tasks: [TaskSpecification] = []
        for (path, priority) in [("/a", TaskPriority.low), ("/b", .normal), ("/c", .high), ("/d", .normal)] {
            var task = TaskSpecification(url: server.url(path))
            task.priority = priority
            tasks.append(task)
        }
        let ids = try await fixture.queue.add(tasks, by: QueueFixture.me)
        for id in ids { _ = try await fixture.completed(id) }
        #expect(server.requests().map(\.path) == ["/c", "/b", "/d", "/a"])
    }

    @Test("the daemon's end countsAttempt no attempt, and the next life goes on from there")
    func stop() async throws {
        let server = try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        try await fixture.running(id, bytes: 500_000)
        await fixture.queue.stop()
        let record = try #require(try fixture.store.record(id, owner: nil))
        #expect(record.lifecycle.state == .queued && record.attempts == 0 && record.failures == 0)
        #expect(record.bytesDone >= 500_000 && record.bytesFetched >= record.bytesDone)
        _ = try await fixture.add(server.url("/never"))
        #expect(server.requests(for: "/never").isEmpty)

        let next = try QueueFixture.queue(fixture.store, fixture.settings)
        await next.start()
        let status = try await fixture.status(id, once: [.completed], in: next)
        #expect(status.attempts == 1 && status.bytesFetched - body.size < 200_000)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
        await next.stop()
    }

    @Test("bytes outlive a time when their directory is not there")
    func missingDirectory() async throws {
        let server = try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
        let directory = try TemporaryDirectory(mode: 0o755)
        let mount = try directory.makeDirectory("mount")
        try #require(chmod(mount, 0o777) == 0)
        let fixture = try await QueueFixture { settings in
            settings.downloadRoots = [mount]
            settings.retry.attempts = 1_000
        }
        let id = try await fixture.add(server.url("/a")) { $0.directory = mount }
        try await fixture.running(id, bytes: 500_000)
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        let paused = try await fixture.status(id)
        try #require(rename(mount, directory.file("away")) == 0)
        let last = try fixture.queue.lastEvent()
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        let waiting = try await fixture.status(id, once: [.waiting], after: last)
        #expect(waiting.bytesDone == paused.bytesDone)
        try #require(rename(directory.file("away"), mount) == 0)
        let status = try await fixture.completed(id)
        #expect(status.bytesFetched - body.size < 200_000)
        #expect(body.difference(fromFileAt: mount + "/a") == nil)
    }
}
