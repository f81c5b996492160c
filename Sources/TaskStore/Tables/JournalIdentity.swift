import GRDB

/// The identity of the event journal, by which a reader knows whether its position is still valid.
///
/// A new database has a new identity. So has a backup, since the events after it differ from those of the original.
package struct JournalIdentity: Sendable, Equatable {
    /// 16 hexadecimal digits.
    package let name: String
    /// The journals that this one continues, the oldest first.
    let origins: [Origin]

    /// A journal that is continued by another one.
    struct Origin: Equatable {
        var name: String
        /// The sequence number of the last event in common.
        var last: Int64
    }

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
        if let journal, journal != name { common = min(last, origins.first { $0.name == journal }?.last ?? 0) }
        return Start(sequence: min(sequence, common), isLost: sequence > common)
    }

    /// Returns the key of an event: the journal in which it was recorded first, and its number. A backup keeps the keys
    /// of its events. An event of a backup and another one of its original never have the same key.
    package func key(of sequence: Int64) -> String {
        let first = origins.first { sequence <= $0.last }
        return "\(first?.name ?? name)-\(sequence)"
    }
}

extension JournalIdentity {
    init(_ database: Database) throws {
        guard let name = try String.fetchOne(database, sql: "SELECT value FROM meta WHERE name = 'journal'"),
            name.utf8.count == 16
        else { throw StoreError.corrupt("its table meta has no valid name of the journal") }
        self.name = name
        origins = try database.rows("SELECT name, last FROM journal_origin ORDER BY last, number", []) { row in
            Origin(name: try row.text(0), last: try row.integer(1))
        }
    }

    /// Gives the journal of a backup a new name.
    static func renew(in database: Database) throws {
        try database.execute(
            sql: """
                INSERT INTO journal_origin (name, last, number)
                SELECT value, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0),
                    (SELECT coalesce(max(number), 0) + 1 FROM journal_origin)
                FROM meta WHERE name = 'journal';
                UPDATE meta SET value = lower(hex(randomblob(8))) WHERE name = 'journal';
                """)
    }
}
