import GRDB

extension TaskStore {
    /// Whether the write-ahead log may still hold secrets that were erased.
    package func holdsErasedSecrets() throws(StoreError) -> Bool {
        try read { database in try database.firstRow("SELECT 1 FROM erasure") { _ in true } } ?? false
    }

    /// Empties the write-ahead log; what was erased is then nowhere in the store's files.
    ///
    /// - Returns: whether it could be: not while somebody reads.
    package func emptyLog() async throws(StoreError) -> Bool {
        try await writes.performAlone { database in
            guard try Self.shortenLog(database) else { return false }
            // The next log begins with this, and holds no secret.
            try database.run("DELETE FROM erasure")
            return true
        }
    }

    /// Gives the room back that the write-ahead log takes up.
    ///
    /// - Returns: whether it could be: not while somebody reads.
    func shortenLog() async throws(StoreError) -> Bool {
        try await writes.performAlone { try Self.shortenLog($0) }
    }

    private static func shortenLog(_ database: Database) throws -> Bool {
        // Nobody's writes wait for a reader.
        try database.execute(sql: "PRAGMA busy_timeout = 0")
        defer { try? database.execute(sql: "PRAGMA busy_timeout = \(Int(Self.busyTimeout * 1_000))") }
        return (try? database.checkpoint(.truncate)) != nil
    }
}
