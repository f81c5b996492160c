import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("The history of attempts in the store")
struct AttemptTableTests {
    private func attempt(_ number: Int64, message: String? = nil) -> TaskAttempt {
        TaskAttempt(
            startedAt: number, endedAt: number + 1, address: "192.0.2.1:443", bytes: 5, name: 1, connect: 2, tls: 3,
            firstByte: 4, httpVersion: "1.1", status: 503,
            error: message.map { TaskFailure(code: .http(503), message: $0, httpStatus: 503) })
    }

    private func end(
        _ id: TaskID, _ attempts: [TaskAttempt], in fixture: StoreFixture, isConclusion: Bool = true
    ) async throws {
        var progress = TaskProgress(bytesDone: 0, bytesTotal: nil, bytesFetched: 0)
        progress.endedAttempts = attempts
        let waiting = TaskConclusion(
            lifecycle: try #require(TaskLifecycle(state: .waiting, reason: .retry, notBefore: 9)), attempts: 1,
            failures: 1)
        try await fixture.store.write(
            [isConclusion ? .concluded(id, progress, waiting) : .checkpoint(id, progress)], now: 9)
    }

    @Test("an attempt is written with the end of its run, and read as it was")
    func round() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        #expect(try fixture.store.attempts(of: id) == [])
        let attempts = [attempt(1, message: "a"), TaskAttempt(startedAt: 2, warning: "a page", note: "HTTP/1.1")]
        try await end(id, attempts, in: fixture)
        try await end(id, [attempt(3)], in: fixture, isConclusion: false)
        #expect(try fixture.store.attempts(of: id) == attempts + [attempt(3)])
        #expect(try fixture.store.attempts(of: TaskID(99)) == [])
    }

    @Test("of 45 attempts the last 20 are kept, whether they come one by one or together")
    func limit() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        let other = try await fixture.add("https://example.org/b")
        try await end(other, [attempt(1)], in: fixture)
        for number in 1...20 as ClosedRange<Int64> { try await end(id, [attempt(number)], in: fixture) }
        try await end(id, (21...45).map { attempt($0) }, in: fixture)
        #expect(try fixture.store.attempts(of: id).map(\.startedAt) == Array(26...45))
        #expect(try fixture.number("SELECT count(*) FROM task_attempt") == 21)
        #expect(try fixture.store.attempts(of: other) == [attempt(1)])
    }

    @Test("they go with their task, and come to no task that is gone")
    func removal() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await end(id, [attempt(1)], in: fixture)
        try await fixture.execute("DELETE FROM task")
        #expect(try fixture.number("SELECT count(*) FROM task_attempt") == 0)
        try await end(id, [attempt(2)], in: fixture)
        try await end(id, [attempt(2)], in: fixture, isConclusion: false)
        #expect(try fixture.number("SELECT count(*) FROM task_attempt") == 0)
    }

    @Test("a long message is cut")
    func message() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await end(id, [attempt(1, message: String(repeating: "x", count: 100_000))], in: fixture)
        let stored = try fixture.store.attempts(of: id).first?.error?.message
        #expect(stored == String(repeating: "x", count: 499) + "…")
    }

    @Test("a value of the wrong type is an error, and ends nothing")
    func damaged() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await end(id, [attempt(1)], in: fixture)
        try await fixture.execute(
            """
            CREATE TABLE damaged AS SELECT * FROM task_attempt;
            UPDATE damaged SET bytes = 'x';
            DROP TABLE task_attempt;
            ALTER TABLE damaged RENAME TO task_attempt
            """)
        #expect(throws: StoreError.self) { try fixture.store.attempts(of: id) }
    }
}
