import GRDB
import Logging
import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue
@testable import TaskStore

@Suite("Hosts, owners and batches in turn")
struct SchedulerHostsTests {
    private func tasks(_ server: ScriptedServer, _ count: Int, batch: String? = nil) -> [TaskSpecification] {
        (0..<count).map { number in
            var task = TaskSpecification(url: server.url("/a"))
            task.output = "\(batch ?? "")\(number)"
            task.batch = batch
            return task
        }
    }

    @Test("a thousand tasks of a host that answers 500 make few requests, and all complete once it recovers")
    func storm() async throws {
        let manual = ManualClock()
        let broken = Array(repeating: ScriptedAnswer.status(500), count: 24)
        let server = try ScriptedServer(["/a": broken + [.status(200, body: "x")]])
        let fixture = try await QueueFixture(clock: manual.clock) {
            // A single task may be the host's probe each time.
            $0.retry = RetryPolicy(attempts: 100, baseDelay: 1_000, maximumDelay: 60_000)
        }
        let ids = try await fixture.queue.add(tasks(server, 1_000), by: QueueFixture.me)
        func settle() async throws {
            try await eventually(that: "nothing runs", every: .milliseconds(2)) {
                try await fixture.queue.counts(for: QueueFixture.me)[.active] == 0
            }
        }
        try await settle()
        for _ in 0..<100 {
            manual.advance(by: 100)
            try await settle()
        }
        #expect(server.requests().count <= 20, "\(server.requests().count) requests in ten seconds")
        let counts = try await fixture.queue.counts(for: QueueFixture.me)
        // The next probe may have begun since.
        let left = [TaskState.queued, .waiting, .active].reduce(0) { $0 + (counts[$1] ?? 0) }
        #expect(left == 1_000, "\(counts)")
        try await eventually(that: "all complete", within: .seconds(120), every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.queue.counts(for: QueueFixture.me)[.completed] == ids.count
        }
        #expect(try await fixture.status(ids[999]).attempts == 1, "what waits behind a host countsAttempt nothing")
    }

    @Test("F82: beside a long download of the host, a task or its dead proxy fails as often as retry.attempts says")
    func failuresBesideWork() async throws {
        let server = try ScriptedServer([
            "/long": [.drip(Resource(size: 1_000_000), bytesPerSecond: 1_000)], "/busy": [.status(429)],
            "/a": [.status(200, body: "x")],
        ])
        let fixture = try await QueueFixture()
        _ = try await fixture.add(server.url("/long"))
        try await eventually(that: "the long one receives", every: .milliseconds(2)) {
            try await fixture.queue.page(TaskFilter(), after: nil, limit: 9, newest: nil, for: QueueFixture.me)
                .contains { $0.bytesDone > 0 }
        }
        let busy = try await fixture.status(try await fixture.add(server.url("/busy")), once: [.failed])
        #expect(busy.attempts == 3 && server.requests(for: "/busy").count == 3)
        let closed = try FreePort.next()
        let dead = try await fixture.add(server.url("/a")) { $0.proxy = "http://127.0.0.1:\(closed)" }
        #expect(try await fixture.status(dead, once: [.failed]).attempts == 3)
        await fixture.queue.stop()
    }

    @Test("F82: tasks with a dead proxy of their owner's make few attempts, and count none while the proxy is on hold")
    func deadProxy() async throws {
        let manual = ManualClock()
        let closed = try FreePort.next()
        let fixture = try await QueueFixture(clock: manual.clock) {
            $0.retry = RetryPolicy(attempts: 100, baseDelay: 600_000, maximumDelay: 600_000)
        }
        let tasks = (0..<100).map { number in
            var task = TaskSpecification(url: "http://127.0.0.1:1/\(number)")
            task.proxy = "http://127.0.0.1:\(closed)"
            return task
        }
        let ids = try await fixture.queue.add(tasks, by: QueueFixture.me)
        try await eventually(that: "nothing runs", every: .milliseconds(2)) {
            try await fixture.queue.counts(for: QueueFixture.me)[.active] == 0
        }
        let counts = try await fixture.queue.counts(for: QueueFixture.me)
        #expect((5...32).contains(counts[.waiting] ?? 0), "\(counts)")
        let last = try await fixture.status(ids[99])
        #expect((last.state, last.reason, last.attempts) == (.queued, .hostLimit, 0) && last.notBefore != nil)
        // Whoever resumes a task has its proxy asked.
        let resumed = try await fixture.queue.apply(.resume, to: [ids[99]], by: QueueFixture.me)
        #expect(resumed.hosts == ["http://127.0.0.1:\(closed)"])
        try await eventually(that: "tasks try it again", every: .milliseconds(2)) {
            try await fixture.queue.counts(for: QueueFixture.me)[.waiting] ?? 0 > counts[.waiting] ?? 0
        }
        await fixture.queue.stop()
    }

    @Test("F83: a Retry-After of one user's URL keeps no other user from the host, and ends for her with the task")
    func retryAfterOfOneUser() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer([
            "/busy": [.status(503, headers: ["Retry-After: 3600"])], "/a": [.status(200, body: "x")],
        ])
        let fixture = try await QueueFixture(clock: manual.clock)
        let busy = try await fixture.add(server.url("/busy"))
        _ = try await fixture.status(busy, once: [.waiting])
        let own = try await fixture.add(server.url("/a")) { $0.output = "own" }
        #expect(try await fixture.status(own).reason == .hostLimit)
        let other = try await fixture.add(server.url("/a"), by: QueueFixture.administrator) { $0.output = "other" }
        _ = try await fixture.completed(other)
        let held = try await fixture.queue.heldHosts(for: QueueFixture.me)
        #expect(held.map(\.host) == [server.url("")] && held.map(\.owner) == [QueueFixture.me.uid])
        let stranger = Caller(uid: 4_711, isAdministrator: false)
        #expect(try await fixture.queue.apply(.cancel, to: [busy], by: stranger).changed == 0)
        #expect(try await fixture.status(own).reason == .hostLimit)
        _ = try await fixture.queue.apply(.cancel, to: [busy], by: QueueFixture.me)
        _ = try await fixture.completed(own)
        #expect(try fixture.store.holds(now: manual.now).isEmpty)
        await fixture.queue.stop()
    }

    @Test("F83: a Retry-After ends with the URL that it was for")
    func retryAfterOfOldURL() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer([
            "/busy": [.status(503, headers: ["Retry-After: 3600"])], "/a": [.status(200, body: "x")],
        ])
        let fixture = try await QueueFixture(clock: manual.clock)
        let busy = try await fixture.add(server.url("/busy"))
        _ = try await fixture.status(busy, once: [.waiting])
        var changes = TaskChanges()
        changes.url = server.url("/a")
        _ = try await fixture.queue.update(busy, by: changes, for: QueueFixture.me)
        _ = try await fixture.completed(busy)
        await fixture.queue.stop()
    }

    @Test("Retry-After holds the host for all tasks of the owner, and no other host")
    func retryAfter() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer([
            "/a": [.status(429, headers: ["Retry-After: 100"]), .status(200, body: "x")]
        ])
        let other = try ScriptedServer(["/a": [.status(200, body: "y")]])
        let fixture = try await QueueFixture(clock: manual.clock) { $0.activeTasks = 1 }
        let ids = try await fixture.queue.add(tasks(server, 10), by: QueueFixture.me)
        let waiting = try await fixture.status(ids[0], once: [.waiting])
        #expect(waiting.notBefore.map { $0 >= manual.now + 100_000 } == true)
        let id = try await fixture.add(other.url("/a")) { $0.output = "y" }
        _ = try await fixture.completed(id)
        manual.advance(by: 99_000)
        #expect(try await fixture.status(ids[1]).state == .queued)
        #expect(server.requests().count == 1)
        try await eventually(that: "all complete", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.queue.counts(for: QueueFixture.me)[.completed] == 11
        }
    }

    @Test("what a host asked for counts in the daemon's next life, however its clock was set meanwhile, up to a day")
    func retryAfterOverLives() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer([
            "/a": [.status(503, headers: ["Retry-After: 100"]), .status(200, body: "x")]
        ])
        let fixture = try await QueueFixture(clock: manual.clock) { $0.activeTasks = 1 }
        let ids = try await fixture.queue.add(tasks(server, 10), by: QueueFixture.me)
        _ = try await fixture.status(ids[0], once: [.waiting])
        await fixture.queue.stop()
        for offset in [0, -200_000_000] as [Milliseconds] {
            let clock = QueueClock(
                now: { manual.now + offset }, monotonic: { manual.now }, sleep: manual.clock.sleep)
            let next = try QueueFixture.queue(fixture.store, fixture.settings, clock)
            await next.start()
            let status = try #require(try await next.status(of: ids[1], for: QueueFixture.me))
            #expect((status.state, status.reason) == (.queued, .hostLimit))
            let wait = try #require(status.notBefore) - (manual.now + offset)
            #expect(wait <= (offset == 0 ? 100_000 : RetryPolicy.longestHold), "\(wait)")
            await next.stop()
        }
        #expect(server.requests().count == 1)
    }

    @Test(
        "F49: a host to which a redirect or a list of checksums leads asks for time for itself alone, and not for long",
        arguments: ["redirect", "list", "mirror"])
    func retryAfterOfAnother(way: String) async throws {
        let manual = ManualClock()
        let other = try ScriptedServer(["/b": [.status(503, headers: ["Retry-After: 5000"]), .status(200, body: "y")]])
        let server = try ScriptedServer([
            "/r": [.redirect(other.url("/b"))], "/a": [.status(200, body: "x")], "/gone": [.status(500)],
        ])
        let fixture = try await QueueFixture(clock: manual.clock) {
            $0.retry = RetryPolicy(attempts: 10, baseDelay: 1_000, maximumDelay: 60_000)
        }
        let led = try await fixture.add(server.url(way == "list" ? "/a" : way == "mirror" ? "/gone" : "/r")) {
            $0.output = "led"
            if way == "list" { $0.checksumURL = other.url("/b") }
            if way == "mirror" { $0.mirrors = [other.url("/b")] }
        }
        _ = try await fixture.status(led, once: [.waiting])
        // The clock does not advance.
        let own = try await fixture.add(server.url("/a")) { $0.output = "own" }
        _ = try await fixture.completed(own)
        #expect(try fixture.store.holds(now: manual.now).isEmpty)
        guard way != "mirror" else { return }
        let behind = try await fixture.add(other.url("/b")) { $0.output = "behind" }
        let status = try await fixture.status(behind)
        #expect((status.state, status.reason) == (.queued, .hostLimit))
        try await eventually(that: "the other host is asked again", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try await fixture.status(behind).state == .completed
        }
        #expect(manual.now - status.createdAt <= 120_000)
    }

    @Test("F49: what a task's own proxy says of a host, or fails to bring, keeps nobody else from it")
    func retryAfterOfProxy() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let fixture = try await QueueFixture(clock: manual.clock) {
            $0.retry = RetryPolicy(attempts: 10, baseDelay: 1_000, maximumDelay: 60_000)
        }
        // Requests to a proxy carry the whole URL.
        let proxy = try ScriptedServer([server.url("/a"): [.status(503, headers: ["Retry-After: 5000"])]])
        // Each of them is a host of its own, which a single failure does not put on hold.
        let proxies = [proxy.url("")] + (try (0..<8).map { _ in "http://127.0.0.1:\(try FreePort.next())" })
        for (number, address) in proxies.enumerated() {
            let id = try await fixture.add(server.url("/a")) {
                $0.output = "proxied\(number)"
                $0.proxy = address
            }
            _ = try await fixture.status(id, once: [.waiting])
        }
        // The clock does not advance.
        let direct = try await fixture.add(server.url("/a")) { $0.output = "direct" }
        _ = try await fixture.completed(direct)
        #expect(try fixture.store.holds(now: manual.now).isEmpty)
    }

    @Test("F50: failures where a redirect leads do not close the host that redirects")
    func failuresOfAnother() async throws {
        let manual = ManualClock()
        let other = try ScriptedServer(["/b": [.status(500)]])
        let server = try ScriptedServer(["/r": [.redirect(other.url("/b"))], "/a": [.status(200, body: "x")]])
        let fixture = try await QueueFixture(clock: manual.clock) {
            $0.retry = RetryPolicy(attempts: 10, baseDelay: 60_000, maximumDelay: 60_000)
        }
        for number in 0..<6 {
            let led = try await fixture.add(server.url("/r")) { $0.output = "\(number)" }
            _ = try await fixture.status(led, once: [.waiting])
        }
        let own = try await fixture.add(server.url("/a")) { $0.output = "own" }
        _ = try await fixture.completed(own)
    }

    @Test("whoever resumes a task has its host asked, whatever that asked for, and other hosts left alone")
    func resumed() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer(["/a": [.status(503, headers: ["Retry-After: 1000"]), .status(200, body: "x")]])
        let other = try ScriptedServer(["/a": [.status(503, headers: ["Retry-After: 1000"]), .status(200, body: "x")]])
        let fixture = try await QueueFixture(clock: manual.clock)
        var ids: [TaskID] = []
        for (index, server) in [server, other].enumerated() {
            ids.append(try await fixture.add(server.url("/a")) { $0.output = "\(index)" })
        }
        for id in ids { _ = try await fixture.status(id, once: [.waiting]) }
        let behind = try await fixture.add(server.url("/a")) { $0.output = "behind" }
        #expect(try await fixture.status(behind).reason == .hostLimit)
        let resumed = try await fixture.queue.apply(.resume, to: [ids[0]], by: QueueFixture.me)
        #expect(resumed.hosts == [server.url("")])
        _ = try await fixture.completed(ids[0])
        _ = try await fixture.completed(behind)
        #expect(try fixture.store.holds(now: manual.now).map(\.host) == [other.url("")])
        #expect(other.requests().count == 1)
        // The same holds for a resumed task that waits only for its host.
        let ready = try await fixture.add(other.url("/a")) { $0.output = "ready" }
        #expect(try await fixture.status(ready).reason == .hostLimit)
        #expect(try await fixture.queue.apply(.resume, to: [ready], by: QueueFixture.me).refused.isEmpty)
        _ = try await fixture.completed(ready)
    }

    @Test("ten tasks beside hundreds of another batch, or owner, are next", arguments: [true, false])
    func turns(isOfOtherOwner: Bool) async throws {
        // The server paces the responses, because slots are lent only when the clock advances.
        let server = try ScriptedServer(["/a": [.drip(Resource(size: 40_000), bytesPerSecond: 200_000)]])
        let fixture = try await QueueFixture { $0.activeTasks = 4 }
        let many = try await fixture.queue.add(tasks(server, 200, batch: "many"), by: QueueFixture.me)
        _ = try await fixture.completed(many[0])
        let other = isOfOtherOwner ? QueueFixture.administrator : QueueFixture.me
        let ids = try await fixture.queue.add(tasks(server, 10, batch: "few"), by: other)
        for id in ids { _ = try await fixture.completed(id) }
        let done = try await fixture.queue.page(
            TaskFilter(states: [.completed], batch: "many"), after: nil, limit: 500, newest: nil,
            for: QueueFixture.administrator)
        #expect(done.count < 60, "\(done.count) of the others were done first")
        await fixture.queue.stop()
    }

    @Test("what is to start now waits for no slot")
    func now() async throws {
        let silent = try ScriptedServer(["/a": [.hang]])
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let fixture = try await QueueFixture(clock: ManualClock().clock) { $0.activeTasks = 1 }
        _ = try await fixture.queue.add(tasks(silent, 3), by: QueueFixture.me)
        try await eventually(that: "the slot is taken", every: .milliseconds(2)) { silent.requests().count == 1 }
        let high = try await fixture.add(server.url("/a")) { $0.priority = .high }
        let now = try await fixture.add(server.url("/a")) {
            $0.priority = .now
            $0.output = "now"
        }
        _ = try await fixture.completed(now)
        #expect(try await fixture.status(high).state == .queued)
        _ = try await fixture.queue.update(high, by: priority(.now), for: QueueFixture.me)
        _ = try await fixture.completed(high)
    }

    @Test("a damaged record holds up no other task")
    func damagedRecord() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let fixture = try await QueueFixture()
        await fixture.queue.stop()
        let ids = try await fixture.queue.add(tasks(server, 5), by: QueueFixture.me)
        try await fixture.store.writes.perform {
            try $0.execute(sql: "UPDATE task SET specification = '{' WHERE id = \(ids[0])")
        }
        let queue = try QueueFixture.queue(fixture.store, fixture.settings)
        await queue.start()
        for id in ids.dropFirst() { _ = try await fixture.status(id, once: [.completed], in: queue) }
        await queue.stop()
    }

    private func priority(_ priority: TaskPriority) -> TaskChanges {
        var changes = TaskChanges()
        changes.priority = .set(priority)
        return changes
    }

    @Test("a task that is moved starts in its new place")
    func move() async throws {
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: ["/a", "/b", "/c", "/d"].map { ($0, [ScriptedAnswer.status(200)]) }))
        let silent = try ScriptedServer(["/a": [.hang]])
        let fixture = try await QueueFixture(clock: ManualClock().clock) { $0.activeTasks = 1 }
        let blocker = try await fixture.add(silent.url("/a"))
        try await eventually(that: "the slot is taken", every: .milliseconds(2)) { silent.requests().count == 1 }
        var ids: [TaskID] = []
        for path in ["/a", "/b", "/c", "/d"] { ids.append(try await fixture.add(server.url(path))) }
        _ = try await fixture.queue.move(ids[3], .first, by: QueueFixture.me)
        _ = try await fixture.queue.move(ids[0], .before(ids[2]), by: QueueFixture.me)
        #expect(try await fixture.queue.move(TaskID(99), .first, by: QueueFixture.me) == .unknown(TaskID(99)))
        _ = try await fixture.queue.apply(.cancel, to: [blocker], by: QueueFixture.me)
        for id in ids { _ = try await fixture.completed(id) }
        #expect(server.requests().map(\.path) == ["/d", "/b", "/a", "/c"])
    }
}

@Suite("Signs of the network and of the clock")
struct SchedulerSignsTests {
    /// Returns a queue and a task that waits for `reason`, for a separate scheduler with simulated network
    /// notifications.
    private func scheduler(
        _ reason: TaskReason, _ manual: ManualClock, clock: QueueClock? = nil, server: ScriptedServer
    ) async throws -> (fixture: QueueFixture, id: TaskID) {
        let fixture = try await QueueFixture(clock: clock ?? manual.clock) {
            $0.retry = RetryPolicy(attempts: 3, baseDelay: 1, maximumDelay: 60_000)
        }
        let id = try await fixture.add(server.url("/a")) { $0.paused = true }
        var lifecycle = TaskLifecycle()
        try lifecycle.apply(.start)
        try lifecycle.apply(.park(reason, until: manual.now + 50_000))
        _ = try await fixture.store.write(
            [
                .concluded(
                    id, TaskProgress(bytesDone: 0, bytesTotal: nil, bytesFetched: 0),
                    TaskConclusion(lifecycle: lifecycle, attempts: 1, failures: 1))
            ], now: manual.now)
        return (fixture, id)
    }

    @Test("F34: what waits for the network goes on when the network says so, at once")
    func network() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let (fixture, id) = try await scheduler(.network, manual, server: server)
        let (signs, sign) = AsyncStream.makeStream(of: Void.self)
        let scheduler = fixture.queue.scheduler
        await scheduler.watchNetwork { signs }
        #expect(server.requests().isEmpty)
        sign.yield()
        _ = try await fixture.completed(id)
    }

    @Test(
        "F25: a clock that is set a day back or ahead leaves a wait of fifty seconds one of fifty", arguments: [-1, 1])
    func clockIsSet(days: Int64) async throws {
        let manual = ManualClock()
        let (settings, set) = AsyncStream.makeStream(of: Void.self)
        let offset = ManualOffset()
        let clock = QueueClock(
            now: { manual.now + offset.value }, monotonic: { manual.now }, sleep: manual.clock.sleep,
            settings: { settings })
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let (fixture, id) = try await scheduler(.retry, manual, clock: clock, server: server)
        offset.value = days * 86_400_000
        set.yield()
        try await eventually(that: "the wait is moved", every: .milliseconds(2)) {
            try await fixture.status(id).notBefore == manual.now + offset.value + 50_000
        }
        manual.advance(by: 49_000)
        #expect(try await fixture.status(id).state == .waiting)
        try await eventually(that: "it goes on", every: .milliseconds(5)) {
            manual.advance(by: 500)
            return try await fixture.status(id).state == .completed
        }
        #expect(manual.now - ManualClock().now < 120_000)
    }
}
