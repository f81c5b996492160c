import TaskModel
import Testing

@testable import TaskStore

@Suite("Adding tasks")
struct NewTaskTests {
    @Test("ids grow in the order of the tasks, and are never used again")
    func ids() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(.sample("https://example.org/1"), .sample("https://example.org/2"))
        #expect(ids == ids.sorted() && Set(ids).count == 2)
        _ = try await fixture.store.remove(ids, owner: nil, now: 2)
        let later = try await fixture.add("https://example.org/3")
        #expect(later > ids[1])
    }

    @Test("a second key is not added twice, neither later nor within one call; another owner's is")
    func keys() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.store.add(
            [.sample("https://example.org/1", key: "k"), .sample("https://example.org/2", key: "k"), .sample()], now: 1)
        let id = first[0].id
        #expect(first[0] == .added(id))
        #expect(first[1] == .existing(id))
        #expect(first[2] == .added(first[2].id))
        #expect(first[2].id != id)
        #expect(try await fixture.store.add([.sample(key: "k")], now: 2) == [.existing(id)])
        let other = try await fixture.store.add([.sample(owner: 7, key: "k")], now: 2)
        #expect(other != [.existing(id)])
        #expect(try fixture.store.record(id, owner: nil)?.specification.url == "https://example.org/1")
        #expect(try fixture.store.counts(owner: nil) == [.queued: 3])
        #expect(try fixture.store.lastEvent() == 3)
    }

    @Test("a removed task's key is free again")
    func freedKey() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(.sample(key: "k"))
        _ = try await fixture.store.remove(ids, owner: nil, now: 2)
        let again = try await fixture.store.add([.sample(key: "k")], now: 3)
        #expect(again != [.existing(ids[0])])
    }

    @Test("10,000 tasks in calls of 100 are all there, each with its event")
    func many() async throws {
        let fixture = try StoreFixture()
        for call in 0..<100 {
            _ = try await fixture.store.add((0..<100).map { .sample("https://example.org/\(call)/\($0)") }, now: 1)
        }
        #expect(try fixture.store.counts(owner: nil) == [.queued: 10_000])
        #expect(try fixture.store.lastEvent() == 10_000)
    }
}
