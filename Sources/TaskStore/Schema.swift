import GRDB

/// The database's layout through time.
///
/// A migration that was released is never changed: what comes later is a new one, in a file of its own.
enum Schema {
    /// Marks the file as ours (`PRAGMA application_id`): `dldQ` in ASCII.
    static let applicationID: Int64 = 0x646C_6451

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // Checks at once, and so without the full check of every foreign key at the end.
        migrator.registerMigration("v1", foreignKeyChecks: .immediate, migrate: createFirstTables)
        migrator.registerMigration("v2", foreignKeyChecks: .immediate, migrate: createPieceHashes)
        migrator.registerMigration("v3", foreignKeyChecks: .immediate, migrate: createFlows)
        migrator.registerMigration("v4", foreignKeyChecks: .immediate, migrate: createDependencies)
        migrator.registerMigration("v5", foreignKeyChecks: .immediate, migrate: createPastEntries)
        migrator.registerMigration("v6", foreignKeyChecks: .immediate, migrate: createHoldsAndErasures)
        migrator.registerMigration("v7", foreignKeyChecks: .immediate, migrate: createFoundChecksums)
        migrator.registerMigration("v8", foreignKeyChecks: .immediate, migrate: createOwnerTotals)
        migrator.registerMigration("v9", foreignKeyChecks: .immediate, migrate: createOwnerBytes)
        migrator.registerMigration("v10", foreignKeyChecks: .immediate, migrate: createOwnerRecords)
        migrator.registerMigration("v11", foreignKeyChecks: .immediate, migrate: createPastBytes)
        return migrator
    }

    /// Schemas in the database that this program does not know.
    static func unknown(in database: Database) throws -> [String] {
        try migrator.appliedIdentifiers(database).subtracting(migrator.migrations).sorted()
    }
}
