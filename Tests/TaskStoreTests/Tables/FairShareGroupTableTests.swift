import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Groups and their counts")
struct FairShareGroupTableTests {
    /// Returns the stored counts and the actual ones.
    private func counts(_ fixture: StoreFixture) throws -> (kept: [[Int64]], true: [[Int64]]) {
        let states = TaskState.stored.map(\.rawValue)
        return try fixture.store.read { database in
            let kept = try database.rows(
                "SELECT id, \(states.joined(separator: ", ")) FROM fair_share_group ORDER BY id"
            ) { row in try (0...states.count).map { try row.integer($0) } }
            let sums = states.map { "sum(state = '\($0)')" }.joined(separator: ", ")
            let real = try database.rows(
                "SELECT group_id, \(sums) FROM task GROUP BY group_id ORDER BY group_id"
            ) { row in try (0...states.count).map { try row.integer($0) } }
            return (kept, real)
        }
    }

    @Test("whatever happens to tasks, in 2,000 random steps, the counts are those of the tasks; empty groups are gone")
    func randomWalk() async throws {
        var generator = SeededGenerator(seed: 5)
        let fixture = try StoreFixture()
        let store = fixture.store
        var newest: Int64 = 0
        for step in 0..<2_000 {
            let id = TaskID(Int64.random(in: 1...max(1, newest), using: &generator))
            switch Int.random(in: 0..<10, using: &generator) {
            case 0, 1:
                let batch = ["a", "b", nil].randomElement(using: &generator) ?? nil
                let owner = UInt32.random(in: 1...3, using: &generator)
                let lifecycle = TaskLifecycle(paused: Bool.random(using: &generator))
                newest =
                    try await store.add(
                        Array(repeating: .sample(owner: owner, batch: batch, lifecycle: lifecycle), count: 40), now: 1
                    ).last?.id.rawValue ?? newest
            case 2: _ = try await store.apply(.pause, to: [id], owner: nil, now: 1)
            case 3: _ = try await store.apply(.resume, to: [id], owner: nil, now: 1)
            case 4: _ = try await store.apply(.cancel, to: [id], owner: nil, now: 1)
            case 5: _ = try await store.apply(.retry, to: [id], owner: nil, now: 1)
            case 6: try await fixture.conclude(id, .inState(.waiting, until: 5))
            case 7: _ = try await store.releaseDue(now: 5)
            case 8: try await fixture.conclude(id, .inState(.completed))
            default: _ = try await store.remove([id, TaskID(id.rawValue + 1)], owner: nil, now: 1)
            }
            guard step % 100 == 99 else { continue }
            let (kept, real) = try counts(fixture)
            #expect(kept == real)
        }
        _ = try await store.remove((0...newest).map { TaskID($0) }, owner: nil, now: 1)
        #expect(try counts(fixture).kept.isEmpty)
    }

    @Test("a task that moves to another batch is counted there")
    func moves() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add(.sample(key: "k", batch: "a"))
        let set = try await fixture.store.beginStagedBatch(owner: 1000, batch: "b")
        _ = try await fixture.store.put(set, [.sample(key: "k")], now: 1)
        _ = try await fixture.store.commitStagedBatch(set, owner: 1000, prune: false, dryRun: false, now: 1)
        #expect(
            try fixture.store.batches(owner: nil) == [
                BatchTotals(batch: "b", counts: [.queued: 1], bytesDone: 0, bytesTotal: nil)
            ])
        let (kept, real) = try counts(fixture)
        #expect(kept == real)
    }
}
