import Dispatch
import GRDB
import Synchronization
import TaskModel
import Testing

@testable import TaskStore

/// A transaction observer that counts the commits of its connection.
private final class CommitCounter: TransactionObserver, Sendable {
    private let commits = Atomic(0)
    var count: Int { commits.load(ordering: .acquiring) }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ database: Database) { commits.add(1, ordering: .acquiringAndReleasing) }
    func databaseDidRollback(_ database: Database) {}
}

@Suite("Group commit")
struct WriteQueueTests {
    struct Refusal: Error {}

    /// Enqueues `count` writes while the writer is blocked, unblocks it once all of them are queued, and returns their
    /// results and the number of commits that they took.
    private func run(
        _ count: Int, in fixture: StoreFixture, weight: Int = 1,
        isLasting: @escaping @Sendable (Int) -> Bool = { _ in true },
        _ body: @escaping @Sendable (Int, Database) throws -> Void
    ) async -> (results: [Int: Result<Void, StoreError>], commits: Int) {
        let store = fixture.store
        let counter = CommitCounter()
        store.pool.add(transactionObserver: counter)
        let gate = DispatchSemaphore(value: 0)
        store.pool.asyncWriteWithoutTransaction { _ in gate.wait() }
        let results = await withTaskGroup(of: (Int, Result<Void, StoreError>).self) { group in
            for number in 0..<count {
                group.addTask {
                    do throws(StoreError) {
                        try await store.writes.perform(weight: weight, isLasting: isLasting(number)) {
                            try body(number, $0)
                        }
                        return (number, .success(()))
                    } catch {
                        return (number, .failure(error))
                    }
                }
            }
            while store.writes.waitingCount < count { await Task.yield() }
            gate.signal()
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        return (results, counter.count)
    }

    @Sendable private static func insert(_ number: Int, _ database: Database) throws {
        _ = try database.add([.sample("https://example.org/\(number)")], identity: "00000000", now: 1)
    }

    @Test("200 callers in line share one commit")
    func sharing() async throws {
        let fixture = try StoreFixture()
        let (results, commits) = await run(200, in: fixture, Self.insert)
        for result in results.values { try result.get() }
        #expect(results.count == 200)
        #expect(commits == 1)
        #expect(try fixture.store.counts(owner: nil) == [.queued: 200])
    }

    @Test("200 concurrent adds take far fewer commits than 200")
    func concurrentAdds() async throws {
        let fixture = try StoreFixture()
        let counter = CommitCounter()
        fixture.store.pool.add(transactionObserver: counter)
        let ids = try await withThrowingTaskGroup(of: TaskID.self) { group in
            for number in 0..<200 {
                group.addTask { try await fixture.add("https://example.org/\(number)") }
            }
            return try await group.reduce(into: Set<TaskID>()) { $0.insert($1) }
        }
        #expect(ids.count == 200)
        #expect((1..<150).contains(counter.count))
    }

    @Test("a commit takes no more than 5,000 rows unless one call needs more")
    func bounds() async throws {
        let fixture = try StoreFixture()
        let few = await run(10, in: fixture, weight: 1_000) { _, _ in }
        #expect(few.commits == 2)
        let large = await run(3, in: fixture, weight: 9_000) { _, _ in }
        #expect(large.commits == 3)
    }

    @Test("only what promises nothing yet is left without a sync, and never together with what lasts")
    func syncs() async throws {
        let fixture = try StoreFixture()
        func mode(isLasting: Bool) async throws -> Int64? {
            try await fixture.store.writes.perform(isLasting: isLasting) { database in
                try Self.insert(0, database)
                return try Int64.fetchOne(database, sql: "PRAGMA synchronous")
            }
        }
        let (normal, full): (Int64, Int64) = (1, 2)
        #expect(try await mode(isLasting: true) == full)
        #expect(try await mode(isLasting: false) == normal)
        #expect(try await mode(isLasting: true) == full)
        #expect(try await mode(isLasting: false) == normal)
        let modes = Mutex<Set<Int64?>>([])
        let (results, commits) = await run(9, in: fixture, isLasting: { $0 == 5 }) { _, database in
            let mode = try Int64.fetchOne(database, sql: "PRAGMA synchronous")
            modes.withLock { _ = $0.insert(mode) }
        }
        for result in results.values { try result.get() }
        #expect(commits == 1)
        #expect(modes.withLock(\.self) == [full])
    }

    @Test("a caller that fails fails alone, though it shares the commit with others")
    func failingAlone() async throws {
        let fixture = try StoreFixture()
        let (results, commits) = await run(20, in: fixture) { number, database in
            try Self.insert(number, database)
            if number == 7 { throw Refusal() }
        }
        #expect(commits == 1)
        for (number, result) in results where number != 7 { try result.get() }
        #expect(throws: StoreError.self) { try results[7]?.get() }
        let urls = try fixture.store.page(PageQuery(limit: 100)).map(\.specification.url)
        #expect(Set(urls) == Set((0..<20).filter { $0 != 7 }.map { "https://example.org/\($0)" }))
    }

    @Test("a commit is repeated for a caller that fails, and the next ones are not")
    func repetition() async throws {
        let fixture = try StoreFixture()
        let calls = Mutex(0)
        for isFirst in [true, false] {
            let (results, commits) = await run(20, in: fixture) { number, _ in
                calls.withLock { $0 += 1 }
                if number == 7 { throw Refusal() }
            }
            #expect(commits == 1 && results.count == 20)
            // The callers before the one that fails run once more, in the order in which they came.
            let extra = calls.withLock(\.self) - 20
            #expect(isFirst ? (1...20).contains(extra) : extra == 0)
            calls.withLock { $0 = 0 }
        }
    }

    @Test("where one caller costs all of them the transaction, the others are written all the same, and once")
    func lostTransaction() async throws {
        let fixture = try StoreFixture()
        let (results, _) = await run(20, in: fixture) { number, database in
            try Self.insert(number, database)
            if number == 7 {
                try database.rollback()
                throw Refusal()
            }
        }
        for (number, result) in results where number != 7 { try result.get() }
        #expect(throws: StoreError.self) { try results[7]?.get() }
        #expect(try fixture.store.counts(owner: nil) == [.queued: 19])
    }

    @Test("a full disk is named, spoils nothing, and is over when there is room")
    func fullDisk() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        try await fixture.execute("PRAGMA max_page_count = 1")
        let large = (0..<200).map {
            NewTask.sample("https://example.org/\($0)", output: String(repeating: "n", count: 200))
        }
        await #expect(throws: StoreError.full) { try await fixture.store.add(large, now: 1) }
        #expect(try fixture.store.counts(owner: nil) == [.queued: 1])
        _ = try await fixture.store.apply(.pause, to: [id], owner: nil, now: 2)
        #expect(try fixture.states([id]) == [.paused])
        try await fixture.execute("PRAGMA max_page_count = 1000000")
        #expect(try await fixture.store.add(large, now: 1).count == 200)
    }
}
