import GRDB
import TaskModel

/// A part file on its way from one directory to another.
///
/// It is noted before the part moves, and forgotten once the part lies where its task asks for it: a daemon that starts
/// after a crash in between looks for the part in each of the directories.
package struct PartMove: Sendable, Equatable, Codable {
    package var id: TaskID
    /// The places that the part may lie in, as tasks name them; `nil` is the one of tasks that name none.
    package var directories: [String?]

    package init(id: TaskID, directories: [String?]) {
        self.id = id
        self.directories = directories
    }
}

extension TaskStore {
    /// The moves that nobody has seen to the end.
    package func partMoves() throws(StoreError) -> [PartMove] { try read { try $0.partMoves() } }

    /// Notes moves; durable when it returns.
    package func note(_ moves: [PartMove]) async throws(StoreError) {
        guard !moves.isEmpty else { return }
        try await writes.perform(weight: moves.count) { database in
            try database.setPartMoves(try database.partMoves() + moves)
        }
    }

    /// Forgets the moves of parts that have arrived. After a power cut some of them may be known again.
    package func forgetPartMoves(of ids: Set<TaskID>) async throws(StoreError) {
        guard !ids.isEmpty else { return }
        try await writes.perform(weight: ids.count, isLasting: false) { database in
            try database.setPartMoves(try database.partMoves().filter { !ids.contains($0.id) })
        }
    }
}

extension Database {
    private static let name = "part-moves"

    fileprivate func partMoves() throws -> [PartMove] {
        let text = try firstRow("SELECT value FROM meta WHERE name = ?", [Self.name]) { try $0.text(0) }
        return try text.map { try StoredJSON.decode([PartMove].self, from: $0) } ?? []
    }

    fileprivate func setPartMoves(_ moves: [PartMove]) throws {
        guard !moves.isEmpty else { return try run("DELETE FROM meta WHERE name = ?", [Self.name]) }
        try run(
            "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            [Self.name, try StoredJSON.encode(moves)])
    }
}
