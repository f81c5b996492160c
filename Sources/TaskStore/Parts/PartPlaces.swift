import GRDB
package import TaskModel

/// The facts about a task that are needed when its part file is found.
package struct PartTask: Sendable, Equatable {
    package var createdAt: Milliseconds
    /// Whether the task is completed and thus never resumes. A cancelled or failed task may resume with its part file.
    package var isCompleted: Bool

    package init(createdAt: Milliseconds, isCompleted: Bool) {
        self.createdAt = createdAt
        self.isCompleted = isCompleted
    }
}

/// The directory of a task's part file as the task names it, and the task's owner.
package struct PartPlace: Sendable, Hashable, Codable {
    package var directory: String?
    /// The task's owner; `~` in the directory stands for this user's home.
    package var owner: UInt32

    package init(directory: String?, owner: UInt32) {
        self.directory = directory
        self.owner = owner
    }

    package init(_ record: TaskRecord) {
        self.init(directory: record.specification.directory, owner: record.owner)
    }
}

/// Queries for the directories and owners of part files.
extension TaskStore {
    /// The maximum number of remembered directories of removed tasks; the newest are kept.
    private static let placesLimit = 256
    private static let placesName = "places-of-removed"

    /// Returns the distinct directories of the first `limit` tasks after the given one.
    ///
    /// - Returns: the directories and the last of these tasks; `nil` if there was none.
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

    /// Returns the directories of recently removed tasks.
    package func placesOfRemovedTasks() throws(StoreError) -> [PartPlace] {
        try read { try $0.list(of: PartPlace.self, Self.placesName) }
    }

    /// Returns the existing tasks among `ids`, including hidden ones, and the newest task id ever assigned.
    package func partTasks(_ ids: [TaskID]) throws(StoreError) -> (tasks: [TaskID: PartTask], newest: TaskID) {
        try read { database in
            let rows = try database.rows(
                "SELECT id, created_at, state = 'completed' FROM task WHERE id IN (SELECT value FROM json_each(?))",
                [Self.list(ids)]
            ) { (try $0.id(0), PartTask(createdAt: try $0.integer(1), isCompleted: try $0.integer(2) != 0)) }
            return (Dictionary(rows) { $1 }, TaskID(try database.newestNumber(in: "task")))
        }
    }

    /// Remembers the directories of removed tasks' part files, because a directory may be unavailable at this time.
    static func record(_ places: Set<PartPlace>, in database: Database) throws {
        guard !places.isEmpty else { return }
        var known = try database.list(of: PartPlace.self, placesName)
        let fresh = places.subtracting(known)
        guard !fresh.isEmpty else { return }
        known += fresh
        try database.setList(known.suffix(placesLimit), placesName)
    }
}
