import Dispatch
import GRDB
import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

/// A transaction observer that records the number of changed rows of `task` in each commit.
private final class CommitSizes: TransactionObserver, Sendable {
    private let state = Mutex((rows: 0, commits: [Int]()))
    var commits: [Int] { state.withLock(\.commits) }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { eventKind.tableName == "task" }
    func databaseDidChange(with event: DatabaseEvent) { state.withLock { $0.rows += 1 } }
    func databaseDidCommit(_ database: Database) {
        state.withLock { state in
            if state.rows > 0 { state.commits.append(state.rows) }
            state.rows = 0
        }
    }
    func databaseDidRollback(_ database: Database) { state.withLock { $0.rows = 0 } }
}

@Suite("What one commit may do")
struct CommitBudgetTests {
    private static let megabyte = 1 << 20

    /// Returns a task whose record takes up a megabyte.
    private static func large(_ number: Int, key: String? = nil) -> NewTask {
        .sample("https://example.org/\(number)", key: key)
            .with(password: String(repeating: "p", count: megabyte))
    }

    /// A validation that accepts every change.
    private static let validate: TaskStore.Validation = { asked, _, owner in
        var specification = asked
        let secrets = specification.takeSecrets(redactedURL: asked.url)
        return NewTask(
            specification: specification, secrets: secrets, owner: owner, host: "https://example.org:443",
            lifecycle: TaskLifecycle())
    }

    private func observing(_ fixture: StoreFixture) -> CommitSizes {
        let sizes = CommitSizes()
        fixture.store.pool.add(transactionObserver: sizes)
        return sizes
    }

    /// - Parameter total: the number of rows that all commits together changed.
    private func expectShort(
        _ sizes: CommitSizes, total: Int, _ context: String, location: SourceLocation = #_sourceLocation
    ) {
        let commits = sizes.commits
        #expect(commits.reduce(0, +) == total, "\(context): \(commits)", sourceLocation: location)
        // The limit is 4 MB, plus the rows delayed by the cache.
        #expect(commits.allSatisfy { $0 <= 8 }, "\(context): \(commits)", sourceLocation: location)
    }

    @Test("A31: large tasks are removed a few in a commit, small ones thousands")
    func removal() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add((0..<40).map { Self.large($0) }, now: 1).map(\.id)
        let sizes = observing(fixture)
        #expect(try await fixture.store.remove(ids, owner: nil, now: 2).ids == ids)
        expectShort(sizes, total: 40, "removed")
        let small = try await fixture.store.add((0..<3_000).map { _ in .sample() }, now: 1).map(\.id)
        let many = observing(fixture)
        _ = try await fixture.store.remove(small, owner: nil, now: 2)
        // A busy machine reaches the limit on a commit's time.
        #expect(many.commits.reduce(0, +) == 3_000 && many.commits.count < 30, "\(many.commits)")
    }

    @Test("A39: what takes long for each row is written in commits of a quarter of a second")
    func time() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.store.add((0..<8).map { .sample("https://example.org/\($0)") }, now: 1).map(\.id)
        let sizes = observing(fixture)
        let count = try await fixture.store.inParts(ids, 0) { database, id, count in
            usleep(100_000)
            try database.run("UPDATE task SET attempts = 1 WHERE id = ?", [id.rawValue])
            count += 1
            return 0
        }
        #expect(count == 8 && sizes.commits.reduce(0, +) == 8)
        #expect(sizes.commits.allSatisfy { $0 <= 3 }, "\(sizes.commits)")
    }

    @Test("A31: large tasks that are changed, cancelled or made ready are written a few at a time")
    func changes() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        func large(_ number: Int, _ lifecycle: TaskLifecycle) -> NewTask {
            var task = NewTask.sample("https://example.org/\(number)", lifecycle: lifecycle)
            task.specification.userAgent = String(repeating: "u", count: Self.megabyte)
            return task
        }
        let waiting = try TaskLifecycle.inState(.waiting, until: 5)
        let ids = try await store.add((0..<24).map { large($0, waiting) }, now: 1).map(\.id)
        var sizes = observing(fixture)
        #expect(try await store.releaseDue(now: 9) == 24)
        expectShort(sizes, total: 24, "released")
        sizes = observing(fixture)
        #expect(try await store.apply(.cancel, to: ids, owner: nil, now: 9).changed == ids)
        #expect(sizes.commits.count > 3, "\(sizes.commits)")
    }

    @Test(
        "A31: what takes long to read and to check is changed a few at a time as well, though little of it is written")
    func judged() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let ids = try await store.add((0..<24).map { Self.large($0) }, now: 1).map(\.id)
        var changes = TaskChanges()
        changes.priority = .set(.high)
        let sizes = observing(fixture)
        let outcomes = try await store.update(ids, by: changes, owner: nil, now: 9, validate: Self.validate)
        #expect(outcomes.count == 24 && outcomes.values.allSatisfy { $0 == .updated })
        expectShort(sizes, total: 24, "changed")
    }

    @Test("A31: of a set that was dropped a few large entries, and a few large tasks in their places, go in a commit")
    func sweep() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let set = try await store.beginStagedBatch(owner: 1000, batch: nil)
        for number in 0..<20 { _ = try await store.put(set, [Self.large(number)], now: 1) }
        try await store.abortStagedBatch(set)
        let sizes = observing(fixture)
        while try await store.sweep() {}
        expectShort(sizes, total: 20, "hidden tasks")
        let batch = try await store.beginStagedBatch(owner: 1000, batch: "b")
        for number in 0..<20 { _ = try await store.put(batch, [Self.large(number)], now: 1) }
        try await store.abortStagedBatch(batch)
        var parts = 0
        while try await store.sweep() { parts += 1 }
        #expect(parts > 3)
    }

    @Test("A31: callers with large parts do not share a commit")
    func sharing() async throws {
        let fixture = try StoreFixture()
        let sizes = observing(fixture)
        let gate = DispatchSemaphore(value: 0)
        fixture.store.pool.asyncWriteWithoutTransaction { _ in gate.wait() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<24 {
                group.addTask { _ = try await fixture.store.add([Self.large(number)], now: 1) }
            }
            while fixture.store.writes.waitingCount < 24 { await Task.yield() }
            gate.signal()
            try await group.waitForAll()
        }
        #expect(try fixture.store.counts(owner: nil) == [.queued: 24])
        // Two changes for each task: its row and the sum of its owner's bytes.
        #expect(sizes.commits.allSatisfy { $0 <= 16 }, "\(sizes.commits)")
    }

    @Test("F14: what finds the disk full is tried with less each time, until it fits")
    func halved() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let ids = try await store.add((0..<300).map { .sample("https://example.org/\($0)") }, now: 1).map(\.id)
        let tried = Mutex<[Int]>([])
        let done = try await store.inParts(ids, 0) { _, _, count in
            count += 1
            guard count % 20 != 0 || tried.withLock({ $0.count >= 3 }) else {
                tried.withLock { $0.append(count) }
                throw StoreError.full
            }
            return 0
        }
        #expect(done == 300)
        #expect(tried.withLock(\.self) == [20, 20, 20])
        await #expect(throws: StoreError.full) {
            try await store.inParts(ids, 0) { _, _, _ in throw StoreError.full }
        }
        var limit = CommitLimit()
        var rows: [Int] = []
        while limit.halve() { rows.append(limit.rows) }
        #expect(rows == [32, 16, 8, 4, 2, 1])
        for _ in 0..<20 { limit.grow() }
        #expect(limit == CommitLimit())
    }
}
