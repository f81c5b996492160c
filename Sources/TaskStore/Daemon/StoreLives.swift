import GRDB
package import TaskModel

/// A run of the daemon on this database, described by the task ids assigned in it.
///
/// If an older copy of the database is restored, it assigns ids again that the newer database had already assigned.
/// Files left by the newer database's tasks have such an id and an earlier time than the run that assigned the id in
/// this database.
package struct StoreLife: Sendable, Equatable, Codable {
    /// The newest task that existed when the run began.
    package var newest: TaskID
    /// The time at which the run began.
    package var since: Milliseconds

    package init(newest: TaskID, since: Milliseconds) {
        self.newest = newest
        self.since = since
    }
}

extension TaskStore {
    /// The maximum number of remembered runs; a backup from an even earlier run is not expected to be restored.
    private static let livesLimit = 1_000
    private static let livesName = "lives"

    /// Records the start of a run; called before the run assigns a task id. A run that assigned no id is replaced by
    /// the next one.
    package func beginLife(at time: Milliseconds) async throws(StoreError) {
        let life = StoreLife(newest: newestTaskAtOpening, since: time)
        try await writes.perform(isLasting: false) { database in
            var lives = try database.list(of: StoreLife.self, Self.livesName)
            lives.removeAll { $0.newest == life.newest }
            try database.setList((lives + [life]).suffix(Self.livesLimit), Self.livesName)
        }
    }

    /// Returns the recorded runs, oldest first.
    package func lives() throws(StoreError) -> [StoreLife] {
        try read { try $0.list(of: StoreLife.self, Self.livesName) }
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
