import Synchronization

/// A count of the changes to what the queue reports of itself as a whole: its tasks, limits and settings.
///
/// A report that was begun at the present count is up to date, except for rates and byte counts.
package final class ChangeCount: Sendable {
    private let count = Atomic<UInt64>(0)

    package init() {}

    package var value: UInt64 { count.load(ordering: .acquiring) }

    /// Counts a change. Call this once the change is visible to a report that begins now.
    package func add() { count.wrappingAdd(1, ordering: .releasing) }
}
