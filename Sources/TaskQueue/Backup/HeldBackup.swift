import Synchronization
import TaskStore

/// The copy of the database that a client is fetching on its connection. It is gone with the connection.
package final class HeldBackup: Sendable {
    private let backup = Mutex<StoreBackup?>(nil)

    package init() {}

    /// The facts of a copy.
    package struct Facts: Sendable, Equatable {
        /// The size of the copy.
        package var bytes: Int64
        package var tasks: Int
        /// The sequence number of the newest event in the copy.
        package var lastEvent: Int64
        /// The name of the event journal that the copy begins.
        package var journal: String
    }

    /// The facts of the copy; `nil` if there is none.
    package var facts: Facts? { backup.withLock { $0 }.map(Self.facts) }

    /// Returns at most `count` bytes from `offset` on; none where there is no copy.
    package func read(at offset: Int64, count: Int) throws(QueueError) -> [UInt8] {
        guard let backup = backup.withLock({ $0 }) else { return [] }
        do throws(StoreError) { return try backup.read(at: offset, count: count) } catch { throw QueueError(error) }
    }

    func replace(with backup: StoreBackup) -> Facts {
        self.backup.withLock { $0 = backup }
        return Self.facts(backup)
    }

    /// Frees the copy and its disk space.
    func clear() { backup.withLock { $0 = nil } }

    private static func facts(_ backup: StoreBackup) -> Facts {
        Facts(bytes: backup.bytes, tasks: backup.tasks, lastEvent: backup.lastEvent, journal: backup.journal)
    }
}
