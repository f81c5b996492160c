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
            // Nobody's writes wait for a reader.
            try database.execute(sql: "PRAGMA busy_timeout = 0")
            defer { try? database.execute(sql: "PRAGMA busy_timeout = \(Int(Self.busyTimeout * 1_000))") }
            guard (try? database.checkpoint(.truncate)) != nil else { return false }
            // The next log begins with this, and holds no secret.
            try database.run("DELETE FROM erasure")
            return true
        }
    }
}
