import GRDB

extension Schema {
    /// Adds the warnings and the notes of attempts: what is suspicious about the file that they brought, and why they
    /// changed their connection.
    @Sendable static func addNotes(_ database: Database) throws {
        try database.execute(
            sql: """
                ALTER TABLE task_attempt ADD COLUMN warning TEXT;
                ALTER TABLE task_attempt ADD COLUMN note TEXT;
                """)
    }
}
