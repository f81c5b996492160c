import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("A task with its history and its transfer")
struct TaskQueueDetailsTests {
    private func detail(_ id: TaskID, _ fixture: QueueFixture) async throws -> TaskDetail {
        try #require(try await fixture.queue.detail(of: id, for: QueueFixture.me))
    }

    @Test("failed attempts and the one that succeeded stand in the history with their steps")
    func history() async throws {
        let body = Resource(size: 1_000)
        let server = try ScriptedServer(["/a": [.status(503), .status(500), .serve(body)]])
        let fixture = try await QueueFixture { $0.retry = .init(attempts: 5, baseDelay: 1, maximumDelay: 5) }
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        let detail = try await detail(id, fixture)
        #expect(detail.history.map(\.status) == [503, 500, 200])
        #expect(detail.history.map { $0.error?.code } == [.http(503), .http(500), nil])
        #expect(detail.history.map(\.bytes).last == 1_000)
        for attempt in detail.history {
            #expect(attempt.address == "127.0.0.1:\(server.port)" && attempt.httpVersion == "1.1")
            let ended = try #require(attempt.endedAt)
            #expect(attempt.startedAt <= ended)
            let first = try #require(attempt.firstByte)
            #expect(first >= attempt.connect ?? 0 && first <= ended - attempt.startedAt + 1)
            #expect(attempt.tls == nil)
        }
        #expect(detail.history.first?.connect != nil)
        #expect(detail.live == nil && detail.waitingFor == nil)
        #expect(detail.status == (try await fixture.status(id)))
    }

    @Test("a lost connection that the run takes up again is an attempt of its own")
    func retryWithin() async throws {
        let body = Resource(size: 100_000)
        let server = try ScriptedServer(["/a": [.serveThenCut(body, after: 40_000), .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        let status = try await fixture.completed(id)
        let detail = try await detail(id, fixture)
        #expect(detail.history.map { $0.error?.code } == [.truncated, nil])
        #expect(detail.history.map(\.status) == [200, 206])
        #expect(detail.history.reduce(0) { $0 + $1.bytes } == status.bytesFetched)
        #expect(detail.history.count == status.attempts)
    }

    @Test("a redirect is not what an attempt is described by")
    func redirect() async throws {
        let target = try ScriptedServer(["/b": [.serve(Resource(size: 10))]])
        let server = try ScriptedServer(["/a": [.redirect(target.url("/b"))]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        let attempt = try #require(try await detail(id, fixture).history.first)
        #expect(attempt.status == 200 && attempt.address == "127.0.0.1:\(target.port)")
    }

    @Test("a running task has its connection, its bytes, its limit and the attempt that is under way")
    func live() async throws {
        let body = Resource(size: 4 << 20)
        let server = try ScriptedServer(["/a": [.drip(body, after: 1 << 20, bytesPerSecond: 20_000)]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.limit = 50_000_000 }
        try await fixture.running(id, bytes: 1 << 19)
        let detail = try await detail(id, fixture)
        let live = try #require(detail.live)
        #expect(detail.waitingFor == nil)
        #expect(live.rateLimits == [LiveRateLimit(scope: .task, rate: 50_000_000)])
        let connection = try #require(live.connections.first)
        #expect(live.connections.count == 1 && connection.address == "127.0.0.1:\(server.port)")
        #expect(connection.first == 0 && connection.next >= 1 << 19 && connection.end == 4 << 20)
        #expect(live.segments.count == 1 && live.segments[0].first == 0 && live.segments[0].end >= 1 << 19)
        #expect(detail.history.count == 1 && detail.history[0].endedAt == nil)
        #expect(detail.history[0].address == connection.address && detail.history[0].bytes >= 1 << 19)
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        let paused = try await self.detail(id, fixture)
        #expect(paused.live == nil && paused.waitingFor == "paused by you: dlctl resume \(id)")
        #expect(paused.history.count == 1 && paused.history[0].endedAt != nil && paused.history[0].error == nil)
        #expect(paused.resumable == true)
    }

    @Test("a paused download tells that its server did not offer to continue the file")
    func withoutRanges() async throws {
        let server = try ScriptedServer(["/a": [.chunked(Resource(size: 4 << 20))]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.limit = 100_000 }
        try await fixture.running(id, bytes: 1 << 16)
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        #expect(try await detail(id, fixture).resumable == false)
    }

    @Test("tasks that the slots and the limit of their owner hold back say so, in lists and in the daemon's status too")
    func heldBack() async throws {
        let server = try ScriptedServer(["/a": [.drip(Resource(size: 1 << 20), bytesPerSecond: 2_000)]])
        let fixture = try await QueueFixture {
            $0.activeTasks = 1
            $0.activeTasksPerOwner = 1
        }
        var ids: [TaskID] = []
        for _ in 0..<3 { ids.append(try await fixture.add(server.url("/a"))) }
        try await fixture.running(ids[0], bytes: 1)
        let last = try await detail(ids[2], fixture)
        #expect(last.status.reason == .ownerLimit && last.waitingFor?.contains("active-tasks-per-owner") == true)
        let waiting = try await fixture.queue.waitingCauses(for: QueueFixture.me)
        #expect(waiting.causes == [WaitingCause(reason: "owner-limit", tasks: 2)] && waiting.counted == 2)
        let other = Caller(uid: 1001, isAdministrator: false)
        #expect(try await fixture.queue.waitingCauses(for: other).counted == 0)

        let second = try await fixture.add(server.url("/a"), by: other)
        let held = try #require(try await fixture.queue.detail(of: second, for: other))
        #expect(held.waitingFor?.hasPrefix("waits for one of 1 slots (limits.active-tasks)") == true)
    }

    @Test("the place in the queue counts the tasks that start before")
    func place() async throws {
        let server = try ScriptedServer(["/a": [.drip(Resource(size: 1 << 20), bytesPerSecond: 2_000)]])
        let fixture = try await QueueFixture { $0.activeTasks = 1 }
        var ids: [TaskID] = []
        for _ in 0..<5 { ids.append(try await fixture.add(server.url("/a"))) }
        try await fixture.running(ids[0], bytes: 1)
        #expect(try await detail(ids[1], fixture).waitingFor?.hasSuffix("; it is the next one") == true)
        #expect(try await detail(ids[4], fixture).waitingFor?.hasSuffix("; 3 tasks are before it") == true)
    }

    @Test("another user does not see it")
    func owners() async throws {
        let fixture = try await QueueFixture()
        let id = try await fixture.add("http://127.0.0.1:1/a") { $0.paused = true }
        let other = Caller(uid: 1001, isAdministrator: false)
        #expect(try await fixture.queue.detail(of: id, for: other) == nil)
        #expect(try await fixture.queue.detail(of: TaskID(99), for: QueueFixture.me) == nil)
        let seen = try #require(try await fixture.queue.detail(of: id, for: QueueFixture.administrator))
        #expect(seen.waitingFor == "paused by a user: dlctl resume \(id)")
    }
}
