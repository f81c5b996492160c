import FoundationEssentials
import GRDB
package import TaskModel

extension TaskStore {
    /// Returns the digests of a task's pieces, which are not part of ``TaskRecord`` or ``TaskWork``. They are removed
    /// once the task is completed.
    ///
    /// - Returns: `nil` if the task has none or does not exist.
    package func pieceHashes(of id: TaskID) throws(StoreError) -> PieceHashes? {
        try read { database in
            try database.firstRow(
                "SELECT \(PieceHashes.columns) FROM task_piece_hashes WHERE task_id = ?", [id.rawValue],
                PieceHashes.init)
        }
    }
}

extension PieceHashes {
    static let columns = "algorithm, length, hashes"

    fileprivate init(_ row: RowReader) throws(StoreError) {
        self.init(algorithm: try row.word(0), length: try row.integer(1), hashes: try row.bytesOrNil(2) ?? [])
        do {
            try check(size: nil)
        } catch {
            throw .corrupt("the piece hashes of a task have an invalid length or algorithm")
        }
    }

    fileprivate var arguments: StatementArguments { [algorithm.rawValue, length, Data(hashes)] }
}

extension Database {
    /// Stores the digests of a task's pieces.
    ///
    /// - Parameter hashes: `nil` removes them.
    func setPieceHashes(of id: TaskID, to hashes: PieceHashes?) throws {
        try run("DELETE FROM task_piece_hashes WHERE task_id = ?", [id.rawValue])
        guard let hashes else { return }
        try run(
            "INSERT INTO task_piece_hashes (\(PieceHashes.columns), task_id) VALUES (?, ?, ?, ?)",
            hashes.arguments + [id.rawValue])
    }

    func stagePieceHashes(ofEntry entry: Int64, _ hashes: PieceHashes) throws {
        try run(
            "INSERT INTO staged_piece_hashes (\(PieceHashes.columns), entry_id) VALUES (?, ?, ?, ?)",
            hashes.arguments + [entry])
    }

    /// Copies a staged entry's digests to a task within SQLite.
    func movePieceHashes(of id: TaskID, fromEntry entry: Int64) throws {
        try run("DELETE FROM task_piece_hashes WHERE task_id = ?", [id.rawValue])
        try run(
            """
            INSERT INTO task_piece_hashes (task_id, \(PieceHashes.columns))
            SELECT ?, \(PieceHashes.columns) FROM staged_piece_hashes WHERE entry_id = ?
            """, [id.rawValue, entry])
    }

    /// Returns whether a task that has digests has the same ones as a staged entry.
    func hasPieceHashes(_ id: TaskID, ofEntry entry: Int64) throws -> Bool {
        try firstRow(
            """
            SELECT EXISTS (
                SELECT 1 FROM task_piece_hashes AS kept JOIN staged_piece_hashes AS staged
                    ON kept.algorithm = staged.algorithm AND kept.length = staged.length
                    AND kept.hashes = staged.hashes
                WHERE task_id = ? AND entry_id = ?)
            """, [id.rawValue, entry]
        ) { try $0.integer(0) != 0 } ?? false
    }
}
