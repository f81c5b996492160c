import GRDB

/// The identity of the event journal, by which a reader knows whether its position is still valid.
///
/// A new database has a new identity. So has a backup, since the events after it differ from those of the original.
package struct JournalIdentity: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let name: String
    /// The journals that this one continues, with the sequence number of the last event in common.
    let origins: [String: Int64]

    /// The place at which a reader goes on.
    package struct Start: Sendable, Equatable {
        /// The sequence number of the last event that the reader has seen.
        package var sequence: Int64
        /// Whether the reader has seen events that are not in this journal, or may have missed some.
        package var isLost: Bool
    }

    /// Returns the place at which a reader goes on.
    ///
    /// - Parameters:
    ///   - sequence: the last event that the reader has seen; any number.
    ///   - journal: the name of the journal in which it was; `nil` if the reader does not tell.
    ///   - last: the newest event of this journal.
    package func start(after sequence: Int64, in journal: String?, last: Int64) -> Start {
        var common = last
        if let journal, journal != name { common = min(last, origins[journal] ?? 0) }
        return Start(sequence: min(sequence, common), isLost: sequence > common)
    }
}

extension JournalIdentity {
    init(_ database: Database) throws {
        guard let name = try String.fetchOne(database, sql: "SELECT value FROM meta WHERE name = 'journal'"),
            name.utf8.count == 16
        else { throw StoreError.corrupt("its table meta has no valid name of the journal") }
        self.name = name
        let origins = try database.rows("SELECT name, last FROM journal_origin", []) { row in
            (try row.text(0), try row.integer(1) as Int64)
        }
        self.origins = Dictionary(origins, uniquingKeysWith: min)
    }

    /// Gives the journal of a database a new name, at its creation or in a backup.
    static func renew(in database: Database) throws {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        try database.execute(
            sql: """
                INSERT INTO journal_origin (name, last)
                SELECT value, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0)
                FROM meta WHERE name = 'journal';
                INSERT OR REPLACE INTO meta (name, value) VALUES ('journal', :name)
                """, arguments: ["name": String(repeating: "0", count: 16 - digits.utf8.count) + digits])
    }
}
