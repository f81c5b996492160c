import GRDB
import TaskModel

/// The schema of the database, and the steps that lead to it from earlier ones.
///
/// The first version is in `Schema+Tables.swift`. A released version is never changed: each later change is a further
/// migration.
enum Schema {
    /// The value of `PRAGMA application_id` that marks the file as dld's: `dldQ` in ASCII.
    static let applicationID: Int64 = 0x646C_6451

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // Foreign keys are checked immediately, which avoids a full check of all of them at the end of the migration.
        migrator.registerMigration("1", foreignKeyChecks: .immediate, migrate: createTables)
        return migrator
    }

    /// The first of the migrations `v1` to `v19` of the versions that were developed before the first release.
    private static let development = "v1"

    /// Checks that this program knows every migration of a database.
    ///
    /// - Parameter path: the path of the database file, for errors that name it.
    /// - Throws: ``StoreError/development(path:)``, ``StoreError/newer(path:schema:version:)``.
    static func check(_ database: Database, path: String) throws {
        let unknown = try migrator.appliedIdentifiers(database).subtracting(migrator.migrations)
        if unknown.isEmpty { return }
        if unknown.contains(development) { throw StoreError.development(path: path) }
        // A database that a later program has changed in other ways may have no such table.
        let version = try? database.firstRow("SELECT value FROM meta WHERE name = 'version'") { try $0.text(0) }
        throw StoreError.newer(path: path, schema: unknown.sorted().joined(separator: ", "), version: version)
    }
}
