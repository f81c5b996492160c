import GRDB
package import TaskModel

/// A lifetime of the daemon, from start to end, described by the task ids that it assigned in this database.
///
/// If an older copy of the database is restored, it assigns ids again that the newer database had already assigned.
/// Files left by the newer database's tasks have such an id and an earlier time than the lifetime in which this
/// database assigned the id.
package struct StoreLifetime: Sendable, Equatable, Codable {
    /// The newest task that existed when the lifetime began.
    package var newest: TaskID
    /// The time at which the lifetime began.
    package var since: Milliseconds

    package init(newest: TaskID, since: Milliseconds) {
        self.newest = newest
        self.since = since
    }
}

extension TaskStore {
    /// The maximum number of remembered lifetimes; a backup from an even earlier one is not expected to be restored.
    private static let lifetimesLimit = 1_000
    private static let lifetimesName = "lifetimes"

    /// Records the start of a lifetime, before a task id is assigned in it. A lifetime in which no id was assigned is
    /// replaced by the next one.
    package func beginLifetime(at time: Milliseconds) async throws(StoreError) {
        let lifetime = StoreLifetime(newest: newestTaskAtOpening, since: time)
        try await writes.perform(isLasting: false) { database in
            var lifetimes = try database.list(of: StoreLifetime.self, Self.lifetimesName)
            lifetimes.removeAll { $0.newest == lifetime.newest }
            try database.setList((lifetimes + [lifetime]).suffix(Self.lifetimesLimit), Self.lifetimesName)
        }
    }

    /// Returns the recorded lifetimes, oldest first.
    package func lifetimes() throws(StoreError) -> [StoreLifetime] {
        try read { try $0.list(of: StoreLifetime.self, Self.lifetimesName) }
    }
}

/// Access to short lists that belong to the whole store.
extension Database {
    func list<Element: Decodable>(of type: Element.Type, _ name: String) throws -> [Element] {
        let text = try firstRow("SELECT value FROM meta WHERE name = ?", [name]) { try $0.text(0) }
        return try text.map { try StoredJSON.decode([Element].self, from: $0) } ?? []
    }

    func setList(_ list: some Collection<some Encodable>, _ name: String) throws {
        try run(
            "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            [name, try StoredJSON.encode(Array(list))])
    }
}
