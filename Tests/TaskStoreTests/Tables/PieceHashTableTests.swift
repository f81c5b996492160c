import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Digests of pieces in the store")
struct PieceHashTableTests {
    private static func pieces(_ mark: UInt8, bytes: Int = 40) -> PieceHashes {
        PieceHashes(algorithm: .sha1, length: 1 << 20, hashes: Array(repeating: mark, count: bytes))
    }

    private static func task(_ url: String, key: String? = nil, _ pieces: PieceHashes?) -> NewTask {
        var task = NewTask.sample(url, key: key)
        task.specification.pieceHashes = pieces
        return task
    }

    private func rows(_ fixture: StoreFixture) throws -> Int? {
        try fixture.store.read { database in
            try database.firstRow(
                "SELECT (SELECT count(*) FROM task_piece_hashes) + (SELECT count(*) FROM staged_piece_hashes)"
            ) { try $0.int(0) }
        }
    }

    private func apply(
        _ tasks: [NewTask], to fixture: StoreFixture, batch: String? = nil, dryRun: Bool = false
    ) async throws -> StagedBatchOutcome {
        let stagedBatch = try await fixture.store.beginStagedBatch(owner: 1000, batch: batch)
        _ = try await fixture.store.put(stagedBatch, tasks, now: 1_000)
        let outcome = try await fixture.store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: false, dryRun: dryRun, now: 5_000)
        if dryRun { try await fixture.store.abortStagedBatch(stagedBatch) }
        return outcome
    }

    @Test("they are kept apart from the record and from the work, and read for one task at a time")
    func apart() async throws {
        let fixture = try StoreFixture()
        let large = Self.pieces(1, bytes: PieceHashes.maximumByteCount / 20 * 20)
        let ids = try await fixture.add(
            Self.task("https://example.org/a", large), Self.task("https://example.org/b", nil),
            Self.task("https://example.org/c", Self.pieces(3)))
        #expect(try fixture.store.pieceHashes(of: ids[0]) == large)
        #expect(try fixture.store.pieceHashes(of: ids[1]) == nil)
        #expect(try fixture.store.pieceHashes(of: ids[2]) == Self.pieces(3))
        #expect(try fixture.store.pieceHashes(of: TaskID(99)) == nil)
        #expect(try fixture.store.record(ids[0], owner: nil)?.specification.pieceHashes == nil)
        #expect(try fixture.store.work(for: ids[0])?.record.specification.pieceHashes == nil)
        let stored = try fixture.store.read { database in
            try database.rows("SELECT specification FROM task") { try $0.textOrNil(0) }
        }
        #expect(stored == [nil, nil, nil])
    }

    @Test("they go with the task, and with its success; another end keeps them")
    func erased() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(
            Self.task("https://example.org/a", Self.pieces(1)), Self.task("https://example.org/b", Self.pieces(2)),
            Self.task("https://example.org/c", Self.pieces(3)))
        try await fixture.conclude(ids[0], .inState(.completed))
        try await fixture.conclude(ids[1], .inState(.failed))
        _ = try await fixture.store.remove([ids[2]], owner: nil, now: 1)
        #expect(try fixture.store.pieceHashes(of: ids[0]) == nil)
        #expect(try fixture.store.pieceHashes(of: ids[1]) == Self.pieces(2))
        #expect(try rows(fixture) == 1)
    }

    @Test("a set of new tasks brings each its own")
    func newSet() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add("https://example.org/before")
        let tasks = (0..<5).map { Self.task("https://example.org/\($0)", $0 % 2 == 0 ? nil : Self.pieces($0)) }
        #expect(try await apply(tasks, to: fixture) == StagedBatchOutcome(added: 5, idRanges: [2...6]))
        for mark in 0..<5 {
            let kept = try fixture.store.pieceHashes(of: TaskID(Int64(mark) + 2))
            #expect(kept == (mark % 2 == 0 ? nil : Self.pieces(UInt8(mark))))
        }
        #expect(try rows(fixture) == 2, "the set's own are gone")
    }

    @Test("in a batch they are compared, and a changed entry takes over what it says", arguments: [nil, "k"])
    func batch(key: String?) async throws {
        let fixture = try StoreFixture()
        func apply(_ pieces: PieceHashes?, dryRun: Bool = false) async throws -> StagedBatchOutcome {
            try await self.apply(
                [Self.task("https://example.org/a", key: key, pieces)], to: fixture, batch: "b", dryRun: dryRun)
        }
        #expect(try await apply(Self.pieces(1)).added == 1)
        #expect(try await apply(Self.pieces(1)).unchanged == 1)
        #expect(try await apply(Self.pieces(2), dryRun: true).updated == 1)
        #expect(try fixture.store.pieceHashes(of: TaskID(1)) == Self.pieces(1))
        #expect(try await apply(Self.pieces(2)).updated == 1)
        #expect(try fixture.store.pieceHashes(of: TaskID(1)) == Self.pieces(2))
        #expect(try await apply(nil).updated == 1)
        #expect(try fixture.store.pieceHashes(of: TaskID(1)) == nil)
        #expect(try await apply(nil).unchanged == 1)
        #expect(try await apply(Self.pieces(3)).updated == 1)
        try await fixture.conclude(TaskID(1), .inState(.completed))
        #expect(try await apply(Self.pieces(3)).unchanged == 1, "what is completed stays")
        while try await fixture.store.sweep() {}
        #expect(try rows(fixture) == 0)
    }

    @Test("a set that is given up takes them along")
    func abandoned() async throws {
        let fixture = try StoreFixture()
        let stagedBatch = try await fixture.store.beginStagedBatch(owner: 1000, batch: nil)
        _ = try await fixture.store.put(stagedBatch, [Self.task("https://example.org/a", Self.pieces(1))], now: 1_000)
        #expect(try rows(fixture) == 1)
        try await fixture.store.abortStagedBatch(stagedBatch)
        while try await fixture.store.sweep() {}
        #expect(try rows(fixture) == 0)
    }

    @Test("what cannot be is an error, and the process goes on")
    func damaged() async throws {
        let fixture = try StoreFixture()
        let ids = try await fixture.add(Self.task("https://example.org/a", Self.pieces(1)))
        for damage in ["algorithm = 'crc'", "algorithm = 'sha-1', length = 0", "length = 1, hashes = x'01'"] {
            try await fixture.execute("UPDATE task_piece_hashes SET \(damage)")
            let error = #expect(throws: StoreError.self, "\(damage)") { try fixture.store.pieceHashes(of: ids[0]) }
            guard case .corrupt = error else {
                Issue.record("\(damage): \(String(describing: error))")
                continue
            }
        }
    }
}
