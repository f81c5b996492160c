import GRDB
import TaskModel

/// A life of the daemon on this database, as the numbers show it that tasks got in it.
///
/// An older copy of the database may be put back, and then gives numbers again that the newer one had given. What the
/// newer one's tasks left bears such a number and an earlier time than the life that gave it here.
package struct StoreLife: Sendable, Equatable, Codable {
    /// The newest task that there was when it began.
    package var newest: TaskID
    /// When it began.
    package var since: Milliseconds

    package init(newest: TaskID, since: Milliseconds) {
        self.newest = newest
        self.since = since
    }
}

extension TaskStore {
    /// Lives that are remembered: of longer ago, no one restores a database.
    private static let livesLimit = 1_000
    private static let livesName = "lives"

    /// Notes that a life began, before it gave a task its number. One that gave none leaves no trace.
    package func beginLife(at time: Milliseconds) async throws(StoreError) {
        let life = StoreLife(newest: newestTaskAtOpening, since: time)
        try await writes.perform(isLasting: false) { database in
            var lives = try database.list(of: StoreLife.self, Self.livesName)
            lives.removeAll { $0.newest == life.newest }
            try database.setList((lives + [life]).suffix(Self.livesLimit), Self.livesName)
        }
    }

    /// Oldest first.
    package func lives() throws(StoreError) -> [StoreLife] {
        try read { try $0.list(of: StoreLife.self, Self.livesName) }
    }
}

/// Short lists that belong to the whole store.
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
