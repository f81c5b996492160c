import TaskModel
import Testing

@testable import TaskStore

@Suite("The stored state of webhooks")
struct TaskStoreWebhooksTests {
    private let fixture: StoreFixture
    private var store: TaskStore { fixture.store }

    init() throws { fixture = try StoreFixture() }

    private func record() async throws -> WebhookRecord? { try await store.openWebhooks(["w"])["w"] }

    @Test("a webhook begins after the newest event, and keeps what is pending, deferred and given up")
    func changes() async throws {
        _ = try await fixture.add("https://example.org/a")
        #expect(try await record() == WebhookRecord(position: 1))
        try await store.record(
            .init(position: 9, pending: [4, 2, 7], deferred: [1000: 5, .max: 6]), ofWebhook: "w")
        var expected = WebhookRecord(position: 9)
        expected.pending = [2, 4, 7]
        expected.deferred = [1000: 5, .max: 6]
        #expect(try await record() == expected)

        try await store.record(.init(done: [4, 8]), ofWebhook: "w")
        try await store.record(.init(position: 3, deferred: [1000: 8]), ofWebhook: "w")
        let givenUp = WebhookRecord.GivenUp(sequence: 2, at: 5, message: "m")
        try await store.record(.init(done: [2], givenUp: givenUp), ofWebhook: "w")
        expected.pending = [7]
        expected.deferred = [1000: 8]
        (expected.givenUpCount, expected.lastGivenUp) = (1, givenUp)
        #expect(try await record() == expected, "the position does not go back")
    }

    @Test("a webhook that is not configured leaves nothing behind, and takes no changes")
    func removed() async throws {
        _ = try await record()
        try await store.record(.init(position: 9, pending: [4], deferred: [1: 5]), ofWebhook: "w")
        #expect(try await store.openWebhooks([]).isEmpty)
        try await store.record(.init(position: 9, pending: [4], deferred: [1: 5]), ofWebhook: "w")
        for table in ["webhook", "webhook_pending", "webhook_deferred"] {
            #expect(try fixture.number("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
    }
}
