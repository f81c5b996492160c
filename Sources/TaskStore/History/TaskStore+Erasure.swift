import GRDB

extension TaskStore {
    /// Returns whether the write-ahead log may still contain deleted secrets.
    package func holdsErasedSecrets() throws(StoreError) -> Bool {
        try read { database in try database.firstRow("SELECT 1 FROM pending_erasure") { _ in true } } ?? false
    }

    /// Truncates the write-ahead log, after which deleted secrets are in none of the store's files.
    ///
    /// - Returns: whether the log was truncated; `false` while there are readers.
    package func emptyLog() async throws(StoreError) -> Bool {
        try await writes.performAlone { database in
            guard try Self.shortenLog(database) else { return false }
            // This deletion is written to the new log, which contains no secret.
            try database.run("DELETE FROM pending_erasure")
            return true
        }
    }

    /// Truncates the write-ahead log to free disk space.
    ///
    /// - Returns: whether the log was truncated; `false` while there are readers.
    func shortenLog() async throws(StoreError) -> Bool {
        try await writes.performAlone { try Self.shortenLog($0) }
    }

    private static func shortenLog(_ database: Database) throws -> Bool {
        // A busy time-out of 0 keeps other writers from waiting for a reader.
        try database.execute(sql: "PRAGMA busy_timeout = 0")
        defer { try? database.execute(sql: "PRAGMA busy_timeout = \(Int(StoreFile.busyTimeout * 1_000))") }
        return (try? database.checkpoint(.truncate)) != nil
    }
}
