import TaskModel
import Testing

@testable import TaskStore

@Suite("Moving tasks")
struct TaskStoreMovesTests {
    private func order(_ fixture: StoreFixture) throws -> [Int64] {
        var order: [Int64] = []
        for owner in try fixture.store.readyOwners(limit: 9) {
            for group in try fixture.store.readyGroups(of: owner, limit: 9) {
                order += try fixture.store.readyTasks(of: group.id, limit: 9_999).map(\.id.rawValue)
            }
        }
        return order
    }

    private func add(_ count: Int, to fixture: StoreFixture) async throws {
        _ = try await fixture.store.add((0..<count).map { _ in .sample() }, now: 1)
    }

    private func move(_ id: Int64, _ placement: TaskPlacement, in fixture: StoreFixture) async throws -> MoveOutcome {
        try await fixture.store.move(TaskID(id), placement, owner: nil, now: 5)
    }

    @Test("first, last and before; what is added later comes behind all")
    func placements() async throws {
        let fixture = try StoreFixture()
        try await add(5, to: fixture)
        #expect(try await move(4, .first, in: fixture) == .moved)
        #expect(try await move(5, .first, in: fixture) == .moved)
        #expect(try await move(1, .last, in: fixture) == .moved)
        #expect(try await move(2, .last, in: fixture) == .moved)
        #expect(try order(fixture) == [5, 4, 3, 1, 2])
        try await add(1, to: fixture)
        #expect(try await move(6, .before(TaskID(3)), in: fixture) == .moved)
        #expect(try await move(2, .before(TaskID(5)), in: fixture) == .moved)
        try await add(1, to: fixture)
        #expect(try order(fixture) == [2, 5, 4, 6, 3, 1, 7])
        let last = try #require(try fixture.store.events(after: 0, limit: 99).events.last { $0.type == .updated })
        #expect(last.id == TaskID(2))
    }

    @Test("however often tasks are moved before one and the same, they keep the order in which they were moved")
    func repeated() async throws {
        let fixture = try StoreFixture()
        try await add(300, to: fixture)
        for id in 3...300 { #expect(try await move(Int64(id), .before(TaskID(2)), in: fixture) == .moved) }
        #expect(try order(fixture) == [1] + (3...300).map { Int64($0) } + [2])
        for id in (3...300).reversed() {
            #expect(try await move(Int64(id), .before(TaskID(Int64(id == 300 ? 2 : id + 1))), in: fixture) == .moved)
        }
        #expect(try order(fixture) == [1] + (3...300).map { Int64($0) } + [2])
    }

    @Test("a move that cannot be says why")
    func refused() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add(.sample(), .sample(priority: .high), .sample(owner: 7), .sample())
        try await fixture.conclude(TaskID(4), .inState(.completed))
        func message(_ id: Int64, _ placement: TaskPlacement) async throws -> String? {
            guard case .wrong(let error) = try await move(id, placement, in: fixture) else { return nil }
            return error.field + " " + error.message
        }
        #expect(try await message(1, .before(TaskID(1))) == "before a task cannot be moved before itself")
        #expect(try await message(1, .before(TaskID(2)))?.contains("another priority") == true)
        #expect(try await message(1, .before(TaskID(3)))?.contains("another owner") == true)
        #expect(try await move(1, .before(TaskID(4)), in: fixture) == .ended(TaskID(4), .completed))
        #expect(try await move(4, .first, in: fixture) == .ended(TaskID(4), .completed))
        #expect(try await move(9, .first, in: fixture) == .unknown(TaskID(9)))
        #expect(try await move(1, .before(TaskID(9)), in: fixture) == .unknown(TaskID(9)))
        #expect(try await fixture.store.move(TaskID(1), .first, owner: 7, now: 1) == .unknown(TaskID(1)))
        #expect(try await fixture.store.move(TaskID(3), .before(TaskID(1)), owner: 7, now: 1) == .unknown(TaskID(1)))
    }
}
