import GRDB

/// Access to values that belong to the whole store.
extension Database {
    func meta(_ name: String) throws -> Int64? {
        try firstRow("SELECT value FROM meta WHERE name = ?", [name]) { Int64(try $0.text(0)) } ?? nil
    }

    /// Stores a value.
    ///
    /// - Parameter value: `nil` removes the entry.
    func setMeta(_ name: String, to value: Int64?) throws {
        guard let value else { return try run("DELETE FROM meta WHERE name = ?", [name]) }
        try setMetaText(name, to: String(value))
    }

    func setMetaText(_ name: String, to value: String) throws {
        try run(
            "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2", [name, value])
    }
}
