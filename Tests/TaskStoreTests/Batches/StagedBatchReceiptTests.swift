import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Receipts of sets")
struct StagedBatchReceiptTests {
    private func apply(_ url: String, receipt: String, dryRun: Bool = false, to store: TaskStore) async throws {
        let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: "b")
        _ = try await store.put(stagedBatch, [NewTask.sample(url)], now: 1_000)
        _ = try await store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: false, dryRun: dryRun, now: 5_000, receipt: receipt)
    }

    @Test("a commit writes what it came to, which outlives the store, until it is removed")
    func written() async throws {
        let directory = try TemporaryDirectory()
        do {
            let fixture = try StoreFixture(in: directory)
            try await apply("http://h/é", receipt: "é\n1", to: fixture.store)
            try await apply("http://h/b", receipt: "other", to: fixture.store)
        }
        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        var expected = StagedBatchReceipt()
        expected.added = 1
        expected.ids = [[1, 1]]
        #expect(try store.receipt("é\n1") == expected)
        #expect(try store.receipt("é") == nil)
        #expect(try store.receipts(beginningWith: "é\n") == ["é\n1"])
        try await store.removeReceipts(["é\n1", "none"])
        #expect(try store.receipt("é\n1") == nil)
        #expect(try store.receipts(beginningWith: "") == ["other"])
    }

    @Test("a staged batch whose receipt is there already is not applied again")
    func once() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        for url in ["http://h/a", "http://h/b"] { try await apply(url, receipt: "r", to: store) }
        #expect(try store.page(PageQuery(limit: 10)).map(\.specification.url) == ["http://h/a"])
        #expect(try store.receipt("r")?.ids == [[1, 1]])
    }

    @Test("a dry run and a commit that fails write none")
    func none() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        try await apply("http://h/a", receipt: "r", dryRun: true, to: store)
        await #expect(throws: StoreError.unknownStagedBatch(99)) {
            try await store.commitStagedBatch(99, owner: 1000, prune: false, dryRun: false, now: 1, receipt: "r")
        }
        #expect(try store.receipt("r") == nil)
    }
}
