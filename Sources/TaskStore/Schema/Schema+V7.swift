import GRDB

extension Schema {
    /// Adds the checksum that a list of digests or a Metalink gave for a task's file.
    @Sendable static func createFoundChecksums(_ database: Database) throws {
        try database.execute(sql: "ALTER TABLE task ADD COLUMN found_checksum TEXT")
    }
}
