import GRDB

/// The versions of the database's schema.
///
/// A released migration is never changed: later changes are new migrations, each in its own file.
enum Schema {
    /// The value of `PRAGMA application_id` that marks the file as dld's: `dldQ` in ASCII.
    static let applicationID: Int64 = 0x646C_6451

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // Foreign keys are checked immediately, which avoids a full check of all of them at the end of the migration.
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
        migrator.registerMigration("v12", foreignKeyChecks: .immediate, migrate: createEventFacts)
        migrator.registerMigration("v13", foreignKeyChecks: .immediate, migrate: createWebhooks)
        migrator.registerMigration("v14", foreignKeyChecks: .immediate, migrate: createAttempts)
        migrator.registerMigration("v15", foreignKeyChecks: .immediate, migrate: boundWebhooks)
        migrator.registerMigration("v16", foreignKeyChecks: .immediate, migrate: indexUploads)
        migrator.registerMigration("v17", foreignKeyChecks: .immediate, migrate: addNotes)
        migrator.registerMigration("v18", foreignKeyChecks: .immediate, migrate: createPauses)
        migrator.registerMigration("v19", foreignKeyChecks: .immediate, migrate: addRounds)
        return migrator
    }

    /// Returns whether one of these steps removes something that an earlier schema stored, so that no later step could
    /// restore it.
    static func losesData(_ steps: [String]) -> Bool { !lossySteps.isDisjoint(with: steps) }

    private static let lossySteps: Set = ["v3", "v15"]

    /// Returns the schema versions in the database that this program does not know.
    static func unknown(in database: Database) throws -> [String] {
        try migrator.appliedIdentifiers(database).subtracting(migrator.migrations).sorted()
    }
}
