import GRDB

extension Schema {
    /// Adds an index of the uploads by state, with which tasks are counted by kind without reading all of them.
    @Sendable static func indexUploads(_ database: Database) throws {
        try database.execute(sql: "CREATE INDEX task_upload ON task (flow, state) WHERE kind = 'upload'")
    }
}
