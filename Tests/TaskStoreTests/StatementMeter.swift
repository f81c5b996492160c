import GRDB
import GRDBSQLite
import Synchronization

@testable import TaskStore

/// A count of the instructions of SQLite that the writer connection executes, and of its commits. Unlike a time it is the
/// same on every machine.
final class StatementMeter: TransactionObserver, Sendable {
    private static let interval = 100
    private let steps = Atomic(0)
    private let commitCount = Atomic(0)

    var instructions: Int { steps.load(ordering: .relaxed) * Self.interval }
    var commits: Int { commitCount.load(ordering: .relaxed) }

    init(_ store: TaskStore) {
        store.pool.writeWithoutTransaction { database in
            // The connection keeps the meter for as long as it exists.
            sqlite3_progress_handler(
                database.sqliteConnection, CInt(Self.interval),
                { context in
                    if let context {
                        let meter = Unmanaged<StatementMeter>.fromOpaque(context).takeUnretainedValue()
                        meter.steps.add(1, ordering: .relaxed)
                    }
                    return 0
                }, Unmanaged.passRetained(self).toOpaque())
        }
        store.pool.add(transactionObserver: self)
    }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ database: Database) { commitCount.add(1, ordering: .relaxed) }
    func databaseDidRollback(_ database: Database) {}
}
