import TaskModel
import TestSupport
import Testing

@testable import TaskQueue
@testable import TaskStore

@Suite("Events")
struct EventHubTests {
    private static func take(_ count: Int, of pages: AsyncStream<[TaskEvent]>) async -> [TaskEvent] {
        var taken: [TaskEvent] = []
        for await page in pages {
            #expect(!page.isEmpty)
            taken += page
            if taken.count >= count { break }
        }
        return taken
    }

    /// Returns a queue with three tasks that were added paused and then cancelled, which makes two events each.
    private static func fixture() async throws -> QueueFixture {
        let fixture = try await QueueFixture()
        for _ in 0..<3 {
            let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
            _ = try await fixture.queue.apply(.cancel, to: [id], by: QueueFixture.me)
        }
        return fixture
    }

    @Test("what happened is told in order, from any place on")
    func replay() async throws {
        let fixture = try await Self.fixture()
        let (last, pages) = try fixture.queue.events(after: 0, for: QueueFixture.administrator)
        #expect(last == 6)
        let all = await Self.take(6, of: pages)
        #expect(all.map(\.sequence) == Array(1...6))
        #expect(all.map(\.type) == [.added, .cancelled, .added, .cancelled, .added, .cancelled])
        let tail = await Self.take(2, of: try fixture.queue.events(after: 4, for: QueueFixture.administrator).pages)
        #expect(tail == Array(all[4...]))
    }

    @Test("replay and what comes live are one, for many listeners")
    func live() async throws {
        let fixture = try await Self.fixture()
        let queue = fixture.queue
        let told = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for start in [Int64?.none, 0, 3, 6] {
                let (last, pages) = try queue.events(after: start, for: QueueFixture.administrator)
                let count = Int(46 - (start ?? last))
                group.addTask { await Self.take(count, of: pages).map(\.sequence) }
            }
            for _ in 0..<40 { _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(told.count == 4)
        for sequences in told { #expect(sequences == Array(((sequences.first ?? 0)...46))) }
        #expect(Set(told.map { $0.first ?? 0 }) == [1, 4, 7])
    }

    @Test("a place that the journal has left behind brings one gap first", .timeLimit(.minutes(1)), arguments: [3, 6])
    func gap(deleted: Int64) async throws {
        let fixture = try await Self.fixture()
        try await fixture.store.writes.perform { try $0.run("DELETE FROM event WHERE sequence <= \(deleted)") }
        let (_, pages) = try fixture.queue.events(after: 1, for: QueueFixture.administrator)
        let told = await Self.take(Int(7 - deleted), of: pages)
        #expect(told.first?.type == .gap && told.first?.sequence == deleted)
        #expect(told.dropFirst().map(\.sequence) == (1...6).filter { $0 > deleted })
        _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        #expect(await Self.take(1, of: pages).map(\.sequence) == [7])
        let after = await Self.take(1, of: try fixture.queue.events(after: deleted, for: QueueFixture.me).pages)
        #expect(after.first?.type != .gap)
    }

    @Test(
        "a place that no journal has reached brings a gap or none, and no end, however large or small its number",
        .timeLimit(.minutes(1)), arguments: [Int64.max, .max - 1, .min, -1])
    func extremePlace(sequence: Int64) async throws {
        let fixture = try await Self.fixture()
        let (last, pages) = try fixture.queue.events(after: sequence, for: QueueFixture.administrator)
        #expect(last == 6)
        let listener = Task { await Self.take(sequence < 0 ? 6 : 1, of: pages) }
        for _ in 0..<20 { _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true } }
        let first = await listener.value.first
        #expect(first?.sequence == (sequence < 0 ? 1 : 6))
        #expect((first?.type == .gap) == (sequence > 0))
    }

    @Test(
        "what was let go of another user's is no gap in one's own, and one that sees all hears of it",
        .timeLimit(.minutes(1)))
    func gapOfOwners() async throws {
        let fixture = try await Self.fixture()
        let other = Caller(uid: 1001, isAdministrator: false)
        let id = try await fixture.add("http://127.0.0.1:9/a", by: other) { $0.paused = true }
        try await fixture.store.writes.perform { try $0.run("DELETE FROM event WHERE sequence BETWEEN 2 AND 6") }
        let own = await Self.take(1, of: try fixture.queue.events(after: 1, for: other).pages)
        #expect(own.map(\.id) == [id] && own.first?.type != .gap)
        let all = await Self.take(2, of: try fixture.queue.events(after: 1, for: QueueFixture.administrator).pages)
        #expect(all.map(\.sequence) == [6, 7] && all.first?.type == .gap)
        let first = await Self.take(3, of: try fixture.queue.events(after: 0, for: QueueFixture.administrator).pages)
        #expect(first.map(\.sequence) == [0, 1, 7] && first.first?.type == .gap, "numbers only grow")
    }

    @Test("a listener that is overtaken by the removal of events is told of it once", .timeLimit(.minutes(1)))
    func overtaken() async throws {
        let fixture = try await Self.fixture()
        let (_, pages) = try fixture.queue.events(after: 0, for: QueueFixture.administrator)
        var iterator = pages.makeAsyncIterator()
        #expect(await iterator.next()?.map(\.sequence) == Array(1...6))
        for _ in 0..<6 { _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true } }
        try await fixture.store.writes.perform { try $0.run("DELETE FROM event WHERE sequence <= 10") }
        let told = await iterator.next() ?? []
        #expect(told.map(\.sequence) == [10, 11, 12] && told.first?.type == .gap)
        _ = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        #expect(await iterator.next()?.map(\.sequence) == [13])
    }

    @Test("a place in another journal, or behind the end of this one, brings a gap first", .timeLimit(.minutes(1)))
    func otherJournal() async throws {
        let fixture = try await Self.fixture()
        func first(_ count: Int, after sequence: Int64, in journal: String?) async throws -> [TaskEvent] {
            await Self.take(
                count, of: try fixture.queue.events(after: sequence, in: journal, for: QueueFixture.me).pages)
        }
        let other = try await first(7, after: 4, in: "0123456789abcdef")
        #expect(other.map(\.sequence) == Array(0...6) && other[0].type == .gap)
        let behind = try await first(1, after: 99, in: fixture.queue.journal)
        #expect(behind.map(\.sequence) == [6] && behind[0].type == .gap)
        let page = try fixture.queue.eventPage(after: 99, limit: nil, for: QueueFixture.me)
        #expect(page.events.map(\.type) == [.gap] && page.position == 6)
        #expect(try await first(2, after: 4, in: fixture.queue.journal).map(\.sequence) == [5, 6])
    }

    @Test("a page after 0 tells that the first events are gone, and one without a start begins with what is there")
    func beginning() async throws {
        let fixture = try await Self.fixture()
        try await fixture.store.writes.perform { try $0.run("DELETE FROM event WHERE sequence <= 2") }
        let page = try fixture.queue.eventPage(after: 0, limit: nil, for: QueueFixture.me)
        #expect(page.events.map(\.type).first == .gap && page.events.dropFirst().first?.sequence == 3)
        let all = try fixture.queue.eventPage(after: nil, limit: nil, for: QueueFixture.me)
        #expect(all.events.first?.sequence == 3 && all.events.first?.type != .gap)
    }

    @Test("of another user's tasks nothing is told")
    func owners() async throws {
        let fixture = try await Self.fixture()
        let other = Caller(uid: 1001, isAdministrator: false)
        let (_, pages) = try fixture.queue.events(after: 0, for: other)
        let id = try await fixture.add("http://127.0.0.1:9/a", by: other) { $0.paused = true }
        #expect(await Self.take(1, of: pages).map(\.id) == [id])
    }

    @Test("a listener that wants certain events hears only those, and passes the others over once")
    func types() async throws {
        let fixture = try await Self.fixture()
        let (_, pages) = try fixture.queue.events(
            after: 0, filter: EventFilter(types: [.cancelled]), for: QueueFixture.me)
        #expect(await Self.take(3, of: pages).map(\.sequence) == [2, 4, 6])
        let id = try await fixture.add("http://127.0.0.1:9/a") { $0.paused = true }
        _ = try await fixture.queue.apply(.cancel, to: [id], by: QueueFixture.me)
        let more = await Self.take(1, of: pages)
        #expect(more.map(\.sequence) == [8])
        #expect(more.map(\.id) == [id])
    }

    @Test("a listener that goes away is let go")
    func cancellation() async throws {
        let fixture = try await QueueFixture()
        let (_, pages) = try fixture.queue.events(after: nil, for: QueueFixture.me)
        let listener = Task { await Self.take(1, of: pages) }
        listener.cancel()
        #expect(await listener.value.isEmpty)
    }
}
