import GRDB

extension Schema {
    /// Adds the size in bytes of each owner's past entries, maintained with every entry.
    ///
    /// `owner_total.past_bytes` is the sum of the lengths of their texts.
    @Sendable static func createPastBytes(_ database: Database) throws {
        let bytes = { (row: String) in
            "("
                + ["batch", "key", "url", "output"].map { "coalesce(length(CAST(\(row)\($0) AS BLOB)), 0)" }
                .joined(separator: " + ") + ")"
        }
        let change = { (terms: String, row: String) in
            """
            UPDATE owner_total SET past_bytes = CAST(min(max(past_bytes \(terms), 0), \(Int64.max)) AS INTEGER)
            WHERE owner = \(row).owner
            """
        }
        try database.execute(
            sql: """
                ALTER TABLE owner_total ADD COLUMN past_bytes INTEGER NOT NULL DEFAULT 0;
                INSERT INTO owner_total (owner, past_bytes)
                SELECT owner, sum(\(bytes(""))) FROM past_entry GROUP BY owner
                ON CONFLICT (owner) DO UPDATE SET past_bytes = excluded.past_bytes;

                DROP TRIGGER past_entry_comes;
                CREATE TRIGGER past_entry_comes AFTER INSERT ON past_entry
                BEGIN
                    INSERT INTO owner_total (owner, past_entries) VALUES (new.owner, 1)
                    ON CONFLICT (owner) DO UPDATE SET past_entries = past_entries + 1;
                    \(change("+ \(bytes("new."))", "new"));
                END;
                CREATE TRIGGER past_bytes_go AFTER DELETE ON past_entry
                BEGIN \(change("- \(bytes("old."))", "old")); END;
                """)
    }
}
