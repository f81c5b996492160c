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
        #expect(end.waiting == 0 && end.failure == nil && end.origin == "http://127.0.0.1:\(server.port)")
    }

    @Test("an event that is not accepted is sent again later, before the next one of its task", arguments: [500, 302])
    func retries(status code: Int) async throws {
        let server = try ScriptedServer(["/h": [.status(code), .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added, .cancelled]))
        try await cancelTask(fixture)
        try await eventually(that: "the failure is known") { try await status(fixture.queue).failure != nil }
        let failing = try await status(fixture.queue)
        #expect(failing.failure?.message == "server replied \(code)")
        #expect(failing.failure?.nextAttempt == time.now + 1000)
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

    @Test("an event is given up after a day, which stays known; the next one of its task is sent")
    func givingUp() async throws {
        let server = try ScriptedServer(["/h": [.status(500), .status(503), .status(200)]])
        let fixture = try await fixture(webhook(server.url("/h"), [.added, .cancelled]))
        try await cancelTask(fixture)
        try await eventually(that: "it fails") { try await status(fixture.queue).failure != nil }
        time.advance(by: WebhookSender.patience)
        try await eventually(that: "it is given up") { try await status(fixture.queue).givenUpCount == 1 }
        let given = try await status(fixture.queue).lastGivenUp
        #expect(given == .init(sequence: 1, at: time.now, message: "server replied 503"))
        try await eventually(that: "the next one is accepted") { try await status(fixture.queue).delivered == 1 }
        await fixture.queue.stop()
        let next = try QueueFixture.queue(fixture.store, fixture.settings, time.clock)
        await next.start()
        #expect(try await status(next).givenUpCount == 1)
        #expect(try await status(next).lastGivenUp == given)
        #expect(server.requests(for: "/h").count == 3)
        await next.stop()
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
        await fixture.queue.stop()
    }

    @Test("an owner's many events that are not accepted do not hold up another's, and are all sent in the end")
    func flood() async throws {
        let server = try ScriptedServer(["/h": Array(repeating: .status(500), count: 128) + [.status(200)]])
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
        try await fixture.queue.apply(settings, session: .init())
        #expect(await fixture.queue.webhookStatuses.isEmpty)
        try await cancelTask(fixture)
        try await fixture.queue.apply(fixture.settings, session: .init())
        try await cancelTask(fixture)
        try await eventually(that: "the new one is accepted") { try await status(fixture.queue).delivered == 1 }
        #expect(try server.requests(for: "/h").map { try event($0).sequence } == [4])
    }
}
