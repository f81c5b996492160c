import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Tasks by kind and state")
struct KindCountsTests {
    @Test("uploads and downloads are counted apart, without those of a batch that is not committed")
    func counts() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        #expect(try store.countsByKind() == [.download: [:], .upload: [:]])
        let ids = try await fixture.add(
            .sample("https://example.org/1"), .sample("https://example.org/2"),
            .sample("https://example.org/3", kind: .upload),
            .sample("https://example.org/4", kind: .upload, batch: "b"),
            .sample("https://example.org/5", kind: .upload, owner: 7))
        try await fixture.conclude(ids[0], .inState(.completed))
        try await fixture.conclude(ids[4], .inState(.failed))
        let set = try await store.beginStagedBatch(owner: 1000, batch: "staged")
        _ = try await store.put(set, [.sample("https://example.org/6", kind: .upload, batch: "staged")], now: 1_000)
        #expect(
            try store.countsByKind()
                == [.download: [.queued: 1, .completed: 1], .upload: [.queued: 2, .failed: 1]])
    }
}
