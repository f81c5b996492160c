import TaskModel
import Testing

@testable import TaskStore

@Suite("Parts on their way")
struct PartMovesTests {
    @Test("moves are noted beside each other, and forgotten one by one")
    func noted() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let moves = [
            PartMove(id: TaskID(1), directories: [nil, "isos"]), PartMove(id: TaskID(2), directories: ["a", "b"]),
        ]
        #expect(try store.partMoves() == [])
        try await store.record([moves[0]])
        try await store.record([moves[1]])
        #expect(try store.partMoves() == moves)
        try await store.forgetPartMoves(of: [TaskID(1)])
        #expect(try store.partMoves() == [moves[1]])
        try await store.forgetPartMoves(of: [TaskID(2), TaskID(3)])
        #expect(try store.partMoves() == [])
        withExtendedLifetime(fixture) {}
    }
}
