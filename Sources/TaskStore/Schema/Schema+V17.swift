import GRDB

extension Schema {
    /// Adds the notes of attempts.
    @Sendable static func addNotes(_ database: Database) throws {
        try database.execute(sql: "ALTER TABLE task_attempt ADD COLUMN note TEXT")
    }
}
