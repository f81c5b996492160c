import GRDB
package import TaskModel

/// A part file that is being moved from one directory to another.
///
/// The move is recorded before the part file is moved, and forgotten once the part file is in its task's directory.
/// After a crash in between, the daemon looks for the part file in each of the directories.
package struct PartMove: Sendable, Equatable, Codable {
    package var id: TaskID
    /// The directories that may contain the part file, as named by tasks; `nil` is the directory of tasks that name
    /// none.
    package var directories: [String?]

    package init(id: TaskID, directories: [String?]) {
        self.id = id
        self.directories = directories
    }
}

extension TaskStore {
    /// Returns the recorded moves that have not been completed.
    package func partMoves() throws(StoreError) -> [PartMove] { try read { try $0.partMoves() } }

    /// Records moves; they are durable when the call returns.
    package func record(_ moves: [PartMove]) async throws(StoreError) {
        guard !moves.isEmpty else { return }
        try await writes.perform(weight: moves.count) { database in
            try database.setPartMoves(try database.partMoves() + moves)
        }
    }

    /// Forgets the moves of part files that have arrived. After a power failure some of these moves may be present
    /// again.
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
