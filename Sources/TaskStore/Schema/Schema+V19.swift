import GRDB

extension Schema {
    /// Counts how often each task was retried after its completion.
    @Sendable static func addRounds(_ database: Database) throws {
        try database.execute(sql: "ALTER TABLE task ADD COLUMN round INTEGER NOT NULL DEFAULT 0")
    }
}
