import GRDB
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Copies of the database in use")
struct StoreBackupTests {
    private static let partSize = 100_000

    /// Writes a copy to `path`.
    private func save(_ backup: StoreBackup, to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var offset: Int64 = 0
        while true {
            let part = try backup.read(at: offset, count: Self.partSize)
            if part.isEmpty { break }
            try #require(write(descriptor, part, part.count) == part.count)
            offset += Int64(part.count)
        }
        #expect(offset == backup.bytes)
    }

    /// The names in the state directory other than those of an open database.
    private func extraNames(_ fixture: StoreFixture) -> [String] {
        TemporaryDirectory.names(beneath: fixture.directory.path)
            .filter { !["dld.db", "dld.db-wal", "dld.db-shm"].contains($0) }
    }

    @Test("a copy is one sound file with everything that was acknowledged, and its journal has a new name")
    func whole() async throws {
        let fixture = try StoreFixture()
        for number in 0..<300 { _ = try await fixture.add("https://example.org/\(number)") }
        let last = try fixture.store.lastEvent()
        let backup = try await fixture.store.backup()
        // What comes after the call is not in it.
        _ = try await fixture.add("https://example.org/later")
        #expect(backup.tasks == 300 && backup.lastEvent == last)
        #expect(extraNames(fixture) == [])

        let place = try TemporaryDirectory()
        try save(backup, to: place.file("dld.db"))
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: place.file("dld.db"), configuration: configuration)
        let (faults, mode) = try await queue.read { database in
            (
                try String.fetchAll(database, sql: "PRAGMA integrity_check"),
                try String.fetchOne(database, sql: "PRAGMA journal_mode")
            )
        }
        #expect(faults == ["ok"] && mode == "delete")
        try queue.close()
        #expect(TemporaryDirectory.names(beneath: place.path) == ["dld.db"])

        let restored = try StoreFixture(in: place)
        #expect(try restored.number("SELECT count(*) FROM task") == 300)
        #expect(restored.store.identity == fixture.store.identity)
        #expect(restored.store.journal.name == backup.journal && backup.journal != fixture.store.journal.name)
        let origin = fixture.store.journal.name
        #expect(
            restored.store.journal.start(after: last, in: origin, last: last) == .init(sequence: last, isLost: false))
        #expect(restored.store.journal.start(after: last + 1, in: origin, last: last).isLost)
        _ = try await restored.add("https://example.org/new")
    }

    @Test("commits go on while a copy is being made, and none of them is torn in it")
    func concurrent() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let text = String(repeating: "a", count: 2_000)
        for number in 0..<20 {
            _ = try await store.add((0..<500).map { .sample("https://example.org/\(number)/\($0)/\(text)") }, now: 1)
        }
        let added = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    let backup = try await store.backup()
                    #expect(backup.tasks >= 10_000 && (backup.tasks - 10_000) % 7 == 0)
                    return 0
                }
            }
            group.addTask {
                var added = 0
                for number in 0..<50 {
                    added += try await store.add(
                        (0..<7).map { .sample("https://example.org/more/\(number)/\($0)") }, now: 1
                    ).count
                }
                return added
            }
            var sum = 0
            for try await count in group { sum += count }
            return sum
        }
        #expect(added == 350)
        #expect(extraNames(fixture) == [])
    }

    @Test("a fifth copy at the same time is refused, until one is gone")
    func places() async throws {
        let fixture = try StoreFixture()
        var held: [StoreBackup] = []
        for _ in 0..<BackupPlaces.limit { held.append(try await fixture.store.backup()) }
        await #expect {
            _ = try await fixture.store.backup()
        } throws: { error in
            if case .quota(let text) = error as? StoreError { text.contains("try again") } else { false }
        }
        held.removeLast()
        // The thread that made the copy may release its place a moment later.
        held.append(
            try await eventually(have: "a copy in the free place") { try? await fixture.store.backup() })
        #expect(held.count == BackupPlaces.limit)
    }

    @Test("after the end no copy is made, and a draft that a killed daemon left is removed at the next start")
    func ended() async throws {
        let fixture = try StoreFixture()
        fixture.store.endBackups()
        await #expect(throws: StoreError.closed) { _ = try await fixture.store.backup() }
        for suffix in ["", "-wal", "-journal"] {
            _ = try fixture.directory.write("x", to: "dld.db.backing-up" + suffix)
        }
        try fixture.store.close()
        let next = try TaskStore(directory: fixture.directory.path)
        #expect(extraNames(fixture) == [])
        try next.close()
    }

    @Test("an end interrupts the copy that is being made")
    func interrupted() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let text = String(repeating: "a", count: 7_000)
        for number in 0..<20 {
            _ = try await store.add((0..<500).map { .sample("https://example.org/\(number)/\($0)/\(text)") }, now: 1)
        }
        let making = Task { try await store.backup() }
        try await eventually(that: "the copy has begun") { !extraNames(fixture).isEmpty }
        store.endBackups()
        await #expect(throws: StoreError.closed) { _ = try await making.value }
        #expect(extraNames(fixture) == [])
    }

    @Test("a damaged database gives no backup")
    func damaged() async throws {
        let fixture = try StoreFixture()
        for number in 0..<200 { _ = try await fixture.add("https://example.org/\(number)") }
        // An entry of an index is lost, which only a full check notices.
        try await fixture.store.pool.writeWithoutTransaction { database in
            try database.execute(
                sql: """
                    PRAGMA writable_schema = ON;
                    CREATE TABLE lost (a INTEGER PRIMARY KEY, b TEXT);
                    CREATE INDEX lost_b ON lost (b);
                    INSERT INTO lost VALUES (1, 'x');
                    UPDATE sqlite_schema SET sql = 'CREATE INDEX lost_b ON lost (b COLLATE NOCASE) WHERE b = ''y'''
                    WHERE name = 'lost_b';
                    PRAGMA writable_schema = OFF
                    """)
        }
        await #expect {
            _ = try await fixture.store.backup()
        } throws: { error in
            if case .corrupt = error as? StoreError { true } else { false }
        }
        #expect(extraNames(fixture) == [])
    }

    @Test("a database that lost its name gives no backup")
    func displaced() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add("https://example.org/a")
        try #require(unlink(fixture.databasePath) == 0)
        await #expect {
            _ = try await fixture.store.backup()
        } throws: { error in
            if case .displaced = error as? StoreError { true } else { false }
        }
    }
}
