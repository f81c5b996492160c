import GRDB
import TaskModel

/// What a part file's task is, for whoever finds the part.
package struct PartTask: Sendable, Equatable {
    package var createdAt: Milliseconds
    /// It never goes on again: a cancelled or failed task may, with the bytes that it has.
    package var isCompleted: Bool

    package init(createdAt: Milliseconds, isCompleted: Bool) {
        self.createdAt = createdAt
        self.isCompleted = isCompleted
    }
}

/// A directory in which a task's part lies: as the task names it, and whose it is.
package struct PartPlace: Sendable, Hashable, Codable {
    package var directory: String?
    /// The task's owner; `~` in the directory is hers.
    package var owner: UInt32

    package init(directory: String?, owner: UInt32) {
        self.directory = directory
        self.owner = owner
    }

    package init(_ record: TaskRecord) {
        self.init(directory: record.specification.directory, owner: record.owner)
    }
}

/// Where part files may lie, and whose they are.
extension TaskStore {
    /// Directories that removed tasks named, the newest of them.
    private static let placesLimit = 256
    private static let placesName = "places-of-removed"

    /// The directories of the first `limit` tasks behind one, each of them once.
    ///
    /// - Returns: also the last of these tasks; `nil` where there was none.
    package func placesOfTasks(
        after id: TaskID, limit: Int
    ) throws(StoreError) -> (places: [PartPlace], last: TaskID?) {
        let rows = try read { database in
            try database.rows(
                """
                SELECT directory, owner, max(id)
                FROM (SELECT id, directory, owner FROM task WHERE id > ? ORDER BY id LIMIT ?)
                GROUP BY directory, owner
                """, [id.rawValue, limit]
            ) { (place: PartPlace(directory: try $0.textOrNil(0), owner: try $0.owner(1)), last: try $0.id(2)) }
        }
        return (rows.map(\.place), rows.map(\.last).max())
    }

    /// The directories of those that were removed not long ago.
    package func placesOfRemovedTasks() throws(StoreError) -> [PartPlace] {
        try read { try $0.list(of: PartPlace.self, Self.placesName) }
    }

    /// Those of `ids` that there are, hidden ones among them, and the newest task that there ever was.
    package func partTasks(_ ids: [TaskID]) throws(StoreError) -> (tasks: [TaskID: PartTask], newest: TaskID) {
        try read { database in
            let rows = try database.rows(
                "SELECT id, created_at, state = 'completed' FROM task WHERE id IN (SELECT value FROM json_each(?))",
                [Self.list(ids)]
            ) { (try $0.id(0), PartTask(createdAt: try $0.integer(1), isCompleted: try $0.integer(2) != 0)) }
            return (Dictionary(rows) { $1 }, TaskID(try database.newestNumber(in: "task")))
        }
    }

    /// Remembers where removed tasks' parts were to lie: the place may be away at this moment.
    static func note(_ places: Set<PartPlace>, in database: Database) throws {
        guard !places.isEmpty else { return }
        var known = try database.list(of: PartPlace.self, placesName)
        let fresh = places.subtracting(known)
        guard !fresh.isEmpty else { return }
        known += fresh
        try database.setList(known.suffix(placesLimit), placesName)
    }
}
