import TaskModel

/// The first changes of a dry run, within limits on their number and size.
struct PlannedChanges: Sendable, Equatable {
    private static let (most, mostBytes) = (1_000, 400_000)

    private(set) var list: [PlannedChange] = []
    private var bytes = 0

    /// The number of changes that may be added.
    var room: Int { bytes < Self.mostBytes ? Self.most - list.count : 0 }

    mutating func append(_ change: @autoclosure () throws -> PlannedChange) rethrows {
        guard room > 0 else { return }
        let change = try change()
        bytes += 100 + change.url.utf8.count + (change.output?.utf8.count ?? 0)
        for field in change.fields { bytes += 40 + (field.from?.utf8.count ?? 0) + (field.to?.utf8.count ?? 0) }
        list.append(change)
    }
}
