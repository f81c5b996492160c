import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Bytes that the records of owners' tasks take up")
struct OwnerRecordsTests {
    /// Returns the sum, computed from the tables.
    private func found(_ owner: UInt32, _ store: TaskStore) throws -> Int64 {
        let texts = ["url", "output", "directory", "key", "specification", "path", "error_message"]
        let sides = [("json", "task_secret"), ("data", "task_resume"), ("hashes", "task_piece_hashes")]
        let terms =
            texts.map { "coalesce(length(CAST(\($0) AS BLOB)), 0)" }
            + sides.map { "coalesce((SELECT length(CAST(\($0) AS BLOB)) FROM \($1) WHERE task_id = task.id), 0)" }
        return try store.read { database in
            try database.firstRow(
                "SELECT coalesce(sum(\(terms.joined(separator: " + "))), 0) FROM task WHERE owner = ?", [owner]
            ) { try $0.integer(0) } ?? 0
        }
    }

    private func expectSum(
        _ store: TaskStore, _ context: String, location: SourceLocation = #_sourceLocation
    ) throws -> Int64 {
        for owner in [1000, 1001] as [UInt32] {
            #expect(
                try store.recordBytes(of: owner) == found(owner, store), "\(context)", sourceLocation: location)
        }
        return try store.recordBytes(of: 1000)
    }

    /// Changes the header fields with a validation that accepts every change.
    private func update(
        _ ids: [TaskID], headers: [String], in store: TaskStore, quota: Quota = Quota()
    ) async throws -> [TaskID: UpdateOutcome] {
        var changes = TaskChanges()
        changes.headers = .set(headers)
        return try await store.update(ids, by: changes, owner: nil, quota: quota, now: 1) { asked, _, owner in
            var specification = asked
            let secrets = specification.takeSecrets(redactedURL: asked.url)
            return NewTask(
                specification: specification, secrets: secrets, owner: owner, host: "https://example.org:443",
                lifecycle: TaskLifecycle())
        }
    }

    private static let hashes = PieceHashes(algorithm: .sha1, length: 1_024, hashes: Array(repeating: 7, count: 60))

    @Test("A31: they are summed with every change of a task, and over a restart")
    func sum() async throws {
        let directory = try TemporaryDirectory()
        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        var pieces = NewTask.sample("https://example.org/p", output: "ä😀")
        pieces.specification.pieceHashes = Self.hashes
        let ids = try await fixture.add(
            .sample(key: "k", path: "/p"), .sample().with(password: "secret"), pieces, .sample(owner: 1001))
        let added = try expectSum(store, "added")
        #expect(added > 0)
        _ = try await store.add([.sample(String(repeating: "a", count: 99), key: "k")], now: 1)
        #expect(try expectSum(store, "there already") == added)
        let outcomes = try await update(ids, headers: ["A: \(String(repeating: "b", count: 500))"], in: store)
        #expect(outcomes.values.allSatisfy { $0 == .updated })
        #expect(try expectSum(store, "larger") > added + 1_500)
        _ = try await update(ids, headers: [], in: store)
        #expect(try expectSum(store, "smaller again") == added)
        let progress = TaskProgress(
            bytesDone: 1, bytesTotal: nil, bytesFetched: 1, path: "/longer/path", resumeData: [1, 2, 3])
        _ = try await store.write(ids.map { .checkpoint($0, progress) }, now: 1)
        _ = try expectSum(store, "checkpoint")
        try await fixture.conclude(
            ids[0], .inState(.failed), error: TaskFailure(code: .internal, message: "message"), resumeData: [1])
        _ = try expectSum(store, "failed")
        _ = try await store.apply(.retry, to: [ids[0]], owner: nil, now: 1)
        _ = try expectSum(store, "retried")
        for id in ids[1...2] { try await fixture.conclude(id, .inState(.completed)) }
        _ = try expectSum(store, "completed")
        try store.close()
        let next = try StoreFixture(in: directory)
        #expect(try expectSum(next.store, "opened again") > 0)
        _ = try await next.store.remove(ids, owner: nil, now: 1)
        #expect(try expectSum(next.store, "removed") == 0)
    }

    @Test("A31: sets count with what is put in its place and what they change, and no more once they are gone")
    func stagedBatches() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        func apply(_ tasks: [NewTask], batch: String?) async throws -> StagedBatchOutcome {
            let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: batch)
            _ = try await store.put(stagedBatch, tasks, now: 1)
            return try await store.commitStagedBatch(stagedBatch, owner: 1000, prune: false, dryRun: false, now: 1)
        }
        #expect(try await apply([.sample(), .sample(key: "k").with(password: "p")], batch: nil).added == 2)
        let plain = try expectSum(store, "no batch")
        var entry = NewTask.sample(output: "o")
        entry.specification.pieceHashes = Self.hashes
        #expect(try await apply([entry], batch: "b").added == 1)
        let first = try expectSum(store, "batch")
        #expect(first > plain)
        entry.specification.userAgent = "another"
        #expect(try await apply([entry.with(password: "p")], batch: "b").updated == 1)
        let before = try expectSum(store, "changed")
        #expect(before > first)
        let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: nil)
        _ = try await store.put(stagedBatch, [.sample(), .sample(key: "l")], now: 1)
        #expect(try expectSum(store, "hidden") > before)
        try await store.abortStagedBatch(stagedBatch)
        while try await store.sweep() {}
        #expect(try expectSum(store, "swept") == before)
    }

    private func expectRefusal(
        _ context: String, location: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("\(context) was taken", sourceLocation: location)
        } catch {
            guard case .quota(let message)? = error as? StoreError else {
                Issue.record("\(context): \(error)", sourceLocation: location)
                return
            }
            #expect(message.contains("limits.records-per-owner"), "\(message)", sourceLocation: location)
        }
    }

    @Test("A31: an owner's records are no larger than allowed, by whatever they would grow")
    func limit() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let quota = Quota(recordsPerOwner: 1_000)
        let large = NewTask.sample("https://example.org/" + String(repeating: "a", count: 480))
        let ids = try await store.add([large, .sample(key: "k")], quota: quota, now: 1).map(\.id)
        let before = try store.recordBytes(of: 1000)
        await expectRefusal("a task") { _ = try await store.add([large], quota: quota, now: 1) }
        await expectRefusal("a secret") {
            let secret = NewTask.sample().with(password: String(repeating: "p", count: 500))
            _ = try await store.add([secret], quota: quota, now: 1)
        }
        await expectRefusal("a header field") {
            let field = "A: " + String(repeating: "b", count: 500)
            _ = try await update([ids[1]], headers: [field], in: store, quota: quota)
        }
        await expectRefusal("a set without a batch") {
            let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: nil)
            _ = try await store.put(stagedBatch, try store.prepare([large]), quota: quota, now: 1)
        }
        await expectRefusal("a batch") {
            let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: "b")
            _ = try await store.put(stagedBatch, try store.prepare([large]), quota: quota, now: 1)
            _ = try await store.commitStagedBatch(
                stagedBatch, owner: 1000, prune: false, dryRun: false, quota: quota, now: 1)
        }
        await expectRefusal("entries that are staged") {
            let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: "c")
            for _ in 0..<3 { _ = try await store.put(stagedBatch, try store.prepare([large]), quota: quota, now: 1) }
        }
        #expect(try store.recordBytes(of: 1000) == before && found(1000, store) == before)
        #expect(try store.counts(owner: nil) == [.queued: 2])
        // Another owner has a separate quota, and existing records may stay or shrink over the limit.
        var other = large
        other.owner = 1001
        _ = try await store.add([other], quota: quota, now: 1)
        let less = Quota(recordsPerOwner: 100)
        #expect(try await store.add([.sample(key: "k")], quota: less, now: 1) == [.existing(ids[1])])
        _ = try await update([ids[0]], headers: ["A: b"], in: store)
        #expect(try await update([ids[0]], headers: [], in: store, quota: less) == [ids[0]: .updated])
        // Removal makes room.
        _ = try await store.remove([ids[0]], owner: nil, now: 1)
        _ = try await store.add([large], quota: quota, now: 1)
    }
}
