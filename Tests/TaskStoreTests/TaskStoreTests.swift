import FoundationEssentials
import GRDB
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Opening and closing the store")
struct TaskStoreTests {
    private func integer(_ pragma: String, _ store: TaskStore) throws -> Int64? {
        try store.pool.writeWithoutTransaction { try Int64.fetchOne($0, sql: "PRAGMA \(pragma)") }
    }

    @Test("the writer syncs its log at every commit")
    func synchronousIsFull() throws {
        let fixture = try StoreFixture()
        #expect(try integer("synchronous", fixture.store) == 2)
        let mode = try fixture.store.pool.writeWithoutTransaction {
            try String.fetchOne($0, sql: "PRAGMA journal_mode")
        }
        #expect(mode == "wal")
    }

    @Test("A36: a deleted row's bytes are overwritten, and neither schema nor page is trusted")
    func guards() throws {
        let fixture = try StoreFixture()
        #expect(try integer("secure_delete", fixture.store) == 1)
        #expect(try integer("trusted_schema", fixture.store) == 0)
        #expect(try integer("cell_size_check", fixture.store) == 1)
        #expect(try integer("foreign_keys", fixture.store) == 1)
        let trustedByReaders = try fixture.store.pool.read { try Int64.fetchOne($0, sql: "PRAGMA trusted_schema") }
        #expect(trustedByReaders == 0)
    }

    @Test("the database is its owner's alone")
    func permissions() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.add("https://example.org/a")
        for name in ["dld.db", "dld.db-wal", "dld.db-shm"] {
            var status = stat()
            try #require(stat(fixture.directory.file(name), &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600, "\(name)")
        }
    }

    @Test("what was acknowledged is there after the store is opened again, with the same identity")
    func reopening() async throws {
        let directory = try TemporaryDirectory()
        let first = try TaskStore(directory: directory.path)
        var specification = TaskSpecification(kind: .upload, url: "https://example.org/in")
        specification.file = "/srv/report.tar"
        specification.batch = "b"
        specification.key = "k"
        specification.priority = .high
        specification.contentType = "application/x-tar"
        var task = NewTask(
            specification: specification, secrets: TaskSecrets(), owner: 4_000_000_000, host: "https://example.org:443",
            lifecycle: TaskLifecycle(startAt: 5_000, now: 1_000), path: "/srv/report.tar")
        task.secrets.password = "secret"
        let outcomes = try await first.add([task], now: 1_000)
        let id = try #require(outcomes.first?.id)
        let identity = first.identity
        try first.close()

        let second = try TaskStore(directory: directory.path)
        let work = try #require(try second.work(for: id))
        #expect(work.record.specification == specification)
        #expect(work.record.owner == 4_000_000_000)
        #expect(work.host == "https://example.org:443")
        #expect(work.record.lifecycle == task.lifecycle)
        #expect(work.record.path == "/srv/report.tar")
        #expect(work.record.createdAt == 1_000)
        #expect(work.secrets == task.secrets)
        #expect(second.identity == identity)
        #expect(identity.utf8.count == 8 && identity.utf8.allSatisfy(\.isHexDigit))
        try second.close()
    }

    @Test("what was acknowledged is in the log already, before any checkpoint")
    func logHoldsCommits() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        // The files as a process that dies at this moment would leave them.
        let copy = try TemporaryDirectory()
        for name in ["dld.db", "dld.db-wal"] {
            let bytes = try StoreFixture.bytes(of: fixture.directory.file(name))
            let descriptor = open(copy.file(name), O_WRONLY | O_CREAT, 0o600)
            #expect(write(descriptor, bytes, bytes.count) == bytes.count)
            close(descriptor)
        }
        let second = try TaskStore(directory: copy.path)
        #expect(try second.record(id, owner: nil) != nil)
        try second.close()
    }

    @Test("closing empties and removes the log; afterwards everything is refused")
    func closing() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        _ = try fixture.store.record(id, owner: nil)
        try fixture.store.close()
        try fixture.store.close()
        #expect(TemporaryDirectory.names(beneath: fixture.directory.path) == ["dld.db"])
        await #expect(throws: StoreError.closed) { try await fixture.store.add([.sample()], now: 1) }
        #expect(throws: StoreError.closed) { try fixture.store.record(id, owner: nil) }
    }

    @Test("F66, A36: a database of a newer program is refused by name and not touched")
    func newerSchema() async throws {
        let fixture = try StoreFixture()
        try await fixture.execute("INSERT INTO grdb_migrations (identifier) VALUES ('999')")
        try await fixture.execute("INSERT INTO meta (name, value) VALUES ('version', '7.1')")
        try fixture.store.close()
        let before = try StoreFixture.bytes(of: fixture.databasePath)
        let error = #expect(throws: StoreError.self) { try TaskStore(directory: fixture.directory.path) }
        #expect(error == .newer(path: fixture.databasePath, schema: "999", version: "7.1"))
        #expect(error?.description.contains("newer dld (version 7.1, schema 999)") == true)
        #expect(try StoreFixture.bytes(of: fixture.databasePath) == before)
    }

    @Test("A36: a database of a development version is refused by name and not touched, with a rescued copy or without")
    func developmentVersion() async throws {
        let fixture = try StoreFixture()
        try await fixture.execute("UPDATE grdb_migrations SET identifier = 'v1'")
        try fixture.store.close()
        let before = try StoreFixture.bytes(of: fixture.databasePath)
        let copy = fixture.directory.file("dld.db.rescued-20260131T235959Z")
        for place in [fixture.databasePath, copy] {
            let error = #expect(throws: StoreError.self) { try TaskStore(directory: fixture.directory.path) }
            #expect(error == .development(path: place))
            #expect(error?.description.contains("an earlier development version of dld") == true)
            #expect(try StoreFixture.bytes(of: place) == before)
            try Data(before).write(to: URL(filePath: copy))
        }
        #expect(try StoreFixture.bytes(of: fixture.databasePath) == before)
        unlink(fixture.databasePath)
        #expect(throws: StoreError.development(path: copy)) { try TaskStore(directory: fixture.directory.path) }
        #expect(try StoreFixture.bytes(of: copy) == before)
    }

    @Test(
        "a file that is no database is refused and not touched",
        arguments: ["x", String(repeating: "no database at all. ", count: 500)])
    func garbage(text: String) throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(text, to: "dld.db")
        #expect(throws: StoreError.notADatabase(path: path)) { try TaskStore(directory: directory.path) }
        #expect(try StoreFixture.bytes(of: path) == Array(text.utf8))
        #expect(TemporaryDirectory.names(beneath: directory.path) == ["dld.db"])
    }

    @Test("a database whose first transaction a power cut broke off becomes one, whatever the disk has of it")
    func tornCreation() throws {
        // The journal that SQLite 3.40 writes before the first page: no pages before, sectors of 512 bytes, pages of
        // 4096.
        let journal: [UInt8] =
            [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7, 0, 0, 0, 0, 0x34, 0x9F, 0x67, 0x36, 0, 0, 0, 0]
            + [0, 0, 2, 0, 0, 0, 0x10, 0] + [UInt8](repeating: 0, count: 484)
        for size in [512, 3072, 4096] {
            let directory = try TemporaryDirectory()
            let path = directory.file("dld.db")
            try Data(repeating: 0, count: size).write(to: URL(filePath: path))
            try Data(journal).write(to: URL(filePath: path + "-journal"))
            try TaskStore(directory: directory.path).close()
            #expect(try StoreFixture.bytes(of: path).starts(with: "SQLite format 3".utf8))
        }
    }

    @Test("a file that is no database is not made one by a journal that knows of pages before")
    func garbageWithJournal() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("x", to: "dld.db")
        let journal: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 1]
        try Data(journal).write(to: URL(filePath: path + "-journal"))
        #expect(throws: StoreError.notADatabase(path: path)) { try TaskStore(directory: directory.path) }
    }

    @Test("another program's database is refused and not touched")
    func foreignDatabase() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("dld.db")
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: "CREATE TABLE other (a)") }
        try queue.close()
        let before = try StoreFixture.bytes(of: path)
        #expect(throws: StoreError.notADatabase(path: path)) { try TaskStore(directory: directory.path) }
        #expect(try StoreFixture.bytes(of: path) == before)
    }

    @Test("an empty file becomes a database; a missing directory is an error that names it")
    func emptyAndMissing() throws {
        let directory = try TemporaryDirectory()
        try directory.write("", to: "dld.db")
        try TaskStore(directory: directory.path).close()
        let error = #expect(throws: StoreError.self) { try TaskStore(directory: directory.file("absent")) }
        guard case .io(let message) = error else {
            Issue.record("not an I/O error: \(String(describing: error))")
            return
        }
        #expect(message.contains("absent/dld.db"))
    }

    @Test("a row that cannot be is an error, and the process goes on")
    func impossibleRows() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        for damage in [
            "state = 'waiting', reason = NULL", "state = 'queued', reason = 'user'", "state = 'asleep'",
            "state = 'queued', reason = NULL, kind = 'sideload'", "kind = 'download', owner = -1",
            "owner = 1000, specification = '{'",
        ] {
            try await fixture.execute("UPDATE task SET \(damage)")
            let error = #expect(throws: StoreError.self, "\(damage)") { try fixture.store.record(id, owner: nil) }
            guard case .corrupt = error else {
                Issue.record("\(damage): \(String(describing: error))")
                continue
            }
        }
    }

    @Test("the log does not grow with the number of commits")
    func logIsBounded() async throws {
        let fixture = try StoreFixture()
        let id = try await fixture.add("https://example.org/a")
        for bytes in 0..<300 {
            let progress = TaskProgress(
                bytesDone: Int64(bytes), bytesTotal: nil, bytesFetched: 0,
                resumeData: [UInt8](repeating: UInt8(truncatingIfNeeded: bytes), count: 65_536))
            _ = try await fixture.store.write([.checkpoint(id, progress)], now: 1)
        }
        let log = try StoreFixture.bytes(of: fixture.directory.file("dld.db-wal"))
        // 19 MiB were written; a checkpoint runs at 1,000 pages of 4 KiB.
        #expect(log.count < 1_100 * 4_200)
    }
}
