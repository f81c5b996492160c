import Foundation
import TaskFiles
import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue
@testable import TaskStore

@Suite("The sender of a webhook", .timeLimit(.minutes(2)))
struct WebhookSenderTests {
    private let time = ManualClock()

    private func webhook(_ url: String, _ types: Set<TaskEvent.Kind> = [.cancelled]) -> Webhook {
        var webhook = Webhook(url: url)
        webhook.types = types
        return webhook
    }

    private func fixture(_ webhooks: Webhook...) async throws -> QueueFixture {
        try await QueueFixture(clock: time.clock) { $0.webhooks = webhooks }
    }

    /// Adds a task and cancels it, which makes two events.
    private func cancelTask(_ fixture: QueueFixture) async throws {
        let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        _ = try await fixture.queue.apply(.cancel, to: [id], by: QueueFixture.me)
    }

    private func event(_ request: ScriptedServer.Request) throws -> TaskEvent {
        try JSONDecoder().decode(TaskEvent.self, from: Data(request.body))
    }

    private func status(_ queue: TaskQueue, _ index: Int = 0) async throws -> WebhookStatus {
        try #require(await queue.webhookStatuses.dropFirst(index).first)
    }

    /// Stops a queue whose messages may need all the time that they have at the end.
    private func stop(_ queue: TaskQueue) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await queue.stop() }
            group.addTask {
                while !Task.isCancelled {
                    time.advance(by: WebhookSender.grace)
                    try? await Task.sleep(for: .milliseconds(10))
                }
            }
            await group.next()
            group.cancelAll()
        }
    }

    @Test("the status counts every event that waits, those of one user beyond what is held too")
    func waiting() async throws {
        let server = try ScriptedServer(["/h": [.status(500)]])
        let fixture = try await fixture(webhook(server.url("/h")))
        for count in [300, 500] {
            let tasks = (0..<count).map { number in
                var task = TaskSpecification(url: "http://127.0.0.1:9/\(number)")
                task.paused = true
                return task
            }
            _ = try await fixture.queue.add(tasks, by: count == 300 ? QueueFixture.me : QueueFixture.administrator)
            _ = try await fixture.queue.apply(.cancel, toTasksMatching: TaskFilter(), by: QueueFixture.administrator)
            let expected = count == 300 ? 300 : 800
            try await eventually(that: "all are counted") { try await status(fixture.queue).waiting == expected }
        }
        #expect(server.requests(for: "/h").count < 10)
        await stop(fixture.queue)
    }

    @Test("events of the types that were asked for are sent, from the start of the webhook on")
    func selection() async throws {
        let server = try ScriptedServer(["/h": [.status(204)]])
        let fixture = try await fixture(webhook(server.url("/h")))
        try await cancelTask(fixture)
        try await cancelTask(fixture)
        try await eventually(that: "both are sent") { server.requests(for: "/h").count == 2 }
        let events = try server.requests(for: "/h").map(event)
        #expect(Set(events.map(\.sequence)) == [2, 4] && events.allSatisfy { $0.type == .cancelled })
        try await eventually(that: "both are done") { try await status(fixture.queue).delivered == 2 }
        let end = try await status(fixture.queue)
        #expect(end.waiting == 0 && end.failed == 0 && end.failure == nil && end.number == 1)
        #expect(end.address.origin == "http://127.0.0.1:\(server.port)" && end.address.path == "/h")
    }

    @Test(
        "an event that is not accepted is sent again later, before the next one of its task",
        arguments: [500, 302, 404])
    func retries(status code: Int) async throws {
        let server = try ScriptedServer(["/h": [.status(code), .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added, .cancelled]))
        try await cancelTask(fixture)
        let failing = try await eventually(have: "the failure") {
            let status = try await status(fixture.queue)
            return status.failure != nil && status.waiting == 2 ? status : nil
        }
        #expect(failing.failure?.message == "server replied \(code)")
        #expect(failing.failed == 1 && failing.waiting == 2)
        let next = try #require(failing.failure?.nextAttempt)
        #expect((time.now...time.now + 1_000).contains(next))
        #expect(server.requests(for: "/h").count == 1)
        time.advance(by: 1000)
        try await eventually(that: "both are accepted") { try await status(fixture.queue).delivered == 2 }
        let requests = server.requests(for: "/h")
        #expect(try requests.map { try event($0).type } == [.added, .added, .cancelled])
        let keys = requests.map { $0.header("idempotency-key") ?? "" }
        #expect(keys[0] == keys[1] && keys[0] != keys[2])
        #expect(try await status(fixture.queue).failure == nil)
    }

    @Test("a receiver that is away is waited for over a restart, and is sent nothing twice")
    func restart() async throws {
        let away = try ScriptedServer(["/h": [.status(200)]])
        let port = away.port
        away.stop()
        let fixture = try await fixture(webhook("http://127.0.0.1:\(port)/h"))
        try await cancelTask(fixture)
        try await eventually(that: "it fails") { try await status(fixture.queue).failure != nil }
        await fixture.queue.stop()
        try await cancelTask(fixture)

        let server = try ScriptedServer(port: port, ["/h": [.status(200)]])
        let second = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await second.start()
        try await eventually(that: "both are accepted") { try await status(second).delivered == 2 }
        await second.stop()
        let third = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await third.start()
        let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        _ = try await third.apply(.cancel, to: [id], by: QueueFixture.me)
        try await eventually(that: "a new one is accepted") { try await status(third).delivered == 1 }
        #expect(Set(try server.requests(for: "/h").map { try event($0).sequence }) == [2, 4, 6])
        #expect(server.requests(for: "/h").count == 3)
        await third.stop()
    }

    @Test("an event that is refused for a day is given up, which stays known; the next one of its task is sent")
    func givingUp() async throws {
        let server = try ScriptedServer(["/h": [.status(404), .status(410), .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added, .cancelled]))
        try await cancelTask(fixture)
        try await eventually(that: "it fails") { try await status(fixture.queue).failure != nil }
        time.advance(by: WebhookSender.patience)
        try await eventually(that: "it is given up") { try await status(fixture.queue).givenUpCount == 1 }
        let given = try await status(fixture.queue).lastGivenUp
        #expect(given == .init(sequence: 1, at: time.now, message: "server replied 410"))
        try await eventually(that: "the next one is accepted") { try await status(fixture.queue).delivered == 1 }
        await fixture.queue.stop()
        let next = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await next.start()
        #expect(try await status(next).givenUpCount == 1)
        #expect(try await status(next).lastGivenUp == given)
        #expect(server.requests(for: "/h").count == 3)
        await next.stop()
    }

    @Test("an event for a receiver that does not work is given up a day after its first failure")
    func givingUpWithoutReceiver() async throws {
        let server = try ScriptedServer(["/h": [.status(500), .status(500), .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.cancelled]))
        try await cancelTask(fixture)
        try await eventually(that: "it fails") { try await status(fixture.queue).failure != nil }
        time.advance(by: WebhookSender.patience)
        try await eventually(that: "it is given up") { try await status(fixture.queue).givenUpCount == 1 }
        #expect(server.requests(for: "/h").count == 2)
        await stop(fixture.queue)
    }

    @Test("a receiver that does not answer delays neither others nor the end")
    func hanging() async throws {
        let server = try ScriptedServer(["/h": [.hang], "/i": [.status(200)]])
        let fixture = try await fixture(webhook(server.url("/h")), webhook(server.url("/i")))
        for _ in 0..<10 { try await cancelTask(fixture) }
        try await eventually(that: "the other has all") { try await status(fixture.queue, 1).delivered == 10 }
        #expect(try await status(fixture.queue).waiting == 10)
        #expect(server.requests(for: "/h").count <= WebhookSender.jobs)
        time.advance(by: WebhookSender.deadline)
        try await eventually(that: "it is given an end") {
            try await status(fixture.queue).failure?.message == "no response within 60 s"
        }
        await stop(fixture.queue)
    }

    @Test("a message under way has a short time at the end, and is sent again by the next process if it needs longer")
    func end() async throws {
        let server = try ScriptedServer(["/h": [.hang, .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h")))
        try await cancelTask(fixture)
        try await eventually(that: "it is under way") { server.requests(for: "/h").count == 1 }
        #expect(try await status(fixture.queue).failure == nil)
        await stop(fixture.queue)
        let next = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await next.start()
        try await eventually(that: "it is accepted") { try await status(next).delivered == 1 }
        #expect(try server.requests(for: "/h").map { try event($0).sequence } == [2, 2])
        await next.stop()
    }

    @Test("the end waits for no retry")
    func endOfWaits() async throws {
        let server = try ScriptedServer(["/h": [.status(404), .status(500)]])
        let fixture = try await fixture(webhook(server.url("/h")))
        for _ in 0..<8 { try await cancelTask(fixture) }
        try await eventually(that: "the receiver is left alone") {
            let status = try await status(fixture.queue)
            return status.failed == server.requests(for: "/h").count && status.failure?.nextAttempt != nil
        }
        // The clock stands still.
        await fixture.queue.stop()
    }

    @Test("a receiver that does not work is sent one event at a time, another one each, and then all at once")
    func probes() async throws {
        let server = try ScriptedServer(["/h": Array(repeating: .status(503), count: 8) + [.status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added]))
        for _ in 0..<50 { _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true } }
        try await eventually(that: "the first messages have failed") {
            let status = try await status(fixture.queue)
            return status.waiting == 50 && status.failed == server.requests(for: "/h").count
                && status.failure?.nextAttempt != nil
        }
        var count = server.requests(for: "/h").count
        #expect(count <= WebhookSender.jobs)
        while count < 8 {
            time.advance(by: WebhookSender.policy.maximumDelay)
            try await eventually(that: "another message has failed") {
                let status = try await status(fixture.queue)
                return server.requests(for: "/h").count > count && status.failure?.nextAttempt != nil
            }
            count += 1
            #expect(server.requests(for: "/h").count == count)
        }
        #expect(Set(try server.requests(for: "/h").map { try event($0).sequence }).count == 8)
        #expect(try await status(fixture.queue).givenUpCount == 0)
        time.advance(by: WebhookSender.policy.maximumDelay)
        try await eventually(that: "all are accepted") { try await status(fixture.queue).delivered == 50 }
        #expect(server.requests(for: "/h").count == 58)
        #expect(try await status(fixture.queue).failure == nil)
    }

    @Test("what is stored about a single event that is refused does not grow with the events after it")
    func bound() async throws {
        let server = try ScriptedServer(["/h": [.status(404), .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added]))
        _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        try await eventually(that: "it is refused") { try await status(fixture.queue).failed == 1 }
        var task = TaskSpecification(url: "http://127.0.0.1:9/a")
        task.paused = true
        _ = try await fixture.queue.add(Array(repeating: task, count: 1_000), by: QueueFixture.me)
        try await eventually(that: "the others are accepted", within: .seconds(60)) {
            try await status(fixture.queue).delivered == 1_000
        }
        await fixture.queue.stop()
        let record = try #require(
            try await fixture.store.openWebhooks([WebhookSenders.name(fixture.settings.webhooks[0])]).values.first)
        #expect(record.position == 1_001 && record.pending == [1] && record.deferred.isEmpty)

        let next = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await next.start()
        try await eventually(that: "it is accepted") { try await status(next).delivered == 1 }
        #expect(Set(try server.requests(for: "/h").map { try event($0).sequence }) == Set(1...1_001))
        #expect(server.requests(for: "/h").count == 1_002)
        await next.stop()
    }

    @Test("events that were not read yet, because their owner has many, are sent by the next process")
    func deferred() async throws {
        let server = try ScriptedServer(["/h": Array(repeating: .status(404), count: 128) + [.status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added]))
        for _ in 0..<300 { _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true } }
        try await eventually(that: "as many as are held are refused") {
            try await status(fixture.queue).failed == 128
        }
        await fixture.queue.stop()
        let next = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await next.start()
        try await eventually(that: "all are accepted") { try await status(next).delivered == 300 }
        #expect(Set(try server.requests(for: "/h").map { try event($0).sequence }) == Set(1...300))
        #expect(server.requests(for: "/h").count == 128 + 300)
        await next.stop()
    }

    @Test("an owner's many events that are not accepted do not hold up another's, and are all sent in the end")
    func flood() async throws {
        let server = try ScriptedServer(["/h": Array(repeating: .status(422), count: 128) + [.status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added]))
        for _ in 0..<300 { _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true } }
        try await eventually(that: "as many as are held have failed") { server.requests(for: "/h").count == 128 }
        let other = Caller(uid: 1001, isAdministrator: false)
        _ = try await fixture.add("http://127.0.0.1:9/b", by: other) { $0.paused = true }
        try await eventually(that: "the other's is accepted") { try await status(fixture.queue).delivered == 1 }
        #expect(try server.requests(for: "/h").last.map { try event($0).owner } == 1001)
        time.advance(by: 1_000)
        try await eventually(that: "all are accepted") { try await status(fixture.queue).delivered == 301 }
        #expect(Set(try server.requests(for: "/h").map { try event($0).sequence }) == Set(1...301))
        #expect(server.requests(for: "/h").count == 128 + 301)
        #expect(try await status(fixture.queue).waiting == 0)
    }

    @Test("a webhook that is taken out of the configuration and put in again begins with new events")
    func reconfigured() async throws {
        let server = try ScriptedServer(["/h": [.status(200)]])
        let fixture = try await fixture(webhook(server.url("/h")))
        var settings = fixture.settings
        settings.webhooks = []
        _ = try await fixture.queue.apply(settings, session: .init())
        #expect(await fixture.queue.webhookStatuses.isEmpty)
        try await cancelTask(fixture)
        _ = try await fixture.queue.apply(fixture.settings, session: .init())
        try await cancelTask(fixture)
        try await eventually(that: "the new one is accepted") { try await status(fixture.queue).delivered == 1 }
        #expect(try server.requests(for: "/h").map { try event($0).sequence } == [4])
    }
}
