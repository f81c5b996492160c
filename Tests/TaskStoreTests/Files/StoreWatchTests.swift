import GRDB
import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("A database that loses its name")
struct StoreWatchTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var names: [String] { TemporaryDirectory.names(beneath: directory.path) }
    private var copies: [String] { names.filter { $0.contains("rescued") } }

    private func expectDisplaced(_ store: TaskStore, sourceLocation: SourceLocation = #_sourceLocation) async {
        await #expect(sourceLocation: sourceLocation) {
            _ = try await store.add([.sample("https://example.org/refused")], now: 1)
        } throws: { error in
            guard case .displaced(let text) = error as? StoreError else { return false }
            return text.contains(directory.path) && text.contains("restart")
        }
    }

    private func urls(_ store: TaskStore) throws -> [String] {
        try store.page(PageQuery(limit: 10)).map(\.specification.url)
    }

    @Test(
        "nothing is acknowledged any more, all that was is saved once, and the next opening goes on with that",
        arguments: [["dld.db"], ["dld.db-wal"], ["dld.db", "dld.db-wal", "dld.db-shm"]], [true, false])
    func removed(lost: [String], isClosed: Bool) async throws {
        let reports = Mutex<[String]>([])
        let store = try TaskStore(directory: directory.path) { text in reports.withLock { $0.append(text) } }
        let id = try #require(try await store.add([.sample("https://example.org/kept")], now: 1).first?.id)
        #expect(store.problem == nil)
        for name in lost { try #require(unlink(directory.file(name)) == 0) }
        for _ in 0..<3 { await expectDisplaced(store) }
        await #expect(throws: StoreError.self) { _ = try await store.emptyLog() }
        #expect(copies.count == 1 && store.problem?.contains(copies.first ?? "-") == true)
        #expect(reports.withLock { $0 } == [store.problem ?? ""])
        #expect(try urls(store) == ["https://example.org/kept"], "what it holds can be read")
        if isClosed { try store.close() }

        let next = try TaskStore(directory: directory.path)
        #expect(try urls(next) == ["https://example.org/kept"] && next.identity == store.identity)
        #expect(next.notes.count == 1 && copies.isEmpty)
        #expect(try await next.add([.sample()], now: 2).first?.id == TaskID(id.rawValue + 1))
        try next.close()
        let last = try TaskStore(directory: directory.path)
        #expect(last.notes == [])
        #expect(try urls(last).count == 2)
        try last.close()
    }

    @Test(
        "A42: a database that another program truncates or overwrites is not written to again, and is saved",
        arguments: ["", "another's", String(repeating: "x", count: 100_000)])
    func ruined(content: String) async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample("https://example.org/kept")], now: 1)
        let descriptor = open(directory.file("dld.db"), O_WRONLY | O_TRUNC)
        #expect(write(descriptor, content, content.utf8.count) == content.utf8.count)
        close(descriptor)
        for _ in 0..<2 { await expectDisplaced(store) }
        #expect(copies.count == 1 && store.problem?.contains("by another program") == true)
        #expect(try urls(store) == ["https://example.org/kept"], "what is in memory can be read")
        try store.close()
        #expect(try StoreFixture.bytes(of: directory.file("dld.db")) == Array(content.utf8))

        let next = try TaskStore(directory: directory.path)
        #expect(try urls(next) == ["https://example.org/kept"] && next.notes.count == 1 && copies.isEmpty)
        _ = try await next.add([.sample()], now: 2)
        #expect(next.problem == nil)
        try next.close()
    }

    @Test("A42: an earlier state of the database in its place, and a log cut short, are noticed")
    func earlier() async throws {
        let store = try TaskStore(directory: directory.path)
        let before = try StoreFixture.bytes(of: directory.file("dld.db"))
        _ = try await store.add((0..<500).map { .sample("https://example.org/\($0)") }, now: 1)
        _ = try await store.emptyLog()
        _ = try await store.add([.sample()], now: 1)
        let descriptor = open(directory.file("dld.db"), O_WRONLY | O_TRUNC)
        #expect(write(descriptor, before, before.count) == before.count)
        close(descriptor)
        await expectDisplaced(store)
        try store.close()

        for size in [0, 20, 4_096] {
            let place = try TemporaryDirectory()
            let second = try TaskStore(directory: place.path)
            _ = try await second.add([.sample()], now: 1)
            try #require(truncate(place.file("dld.db-wal"), size) == 0)
            await #expect(throws: StoreError.self) { _ = try await second.add([.sample()], now: 1) }
            #expect(
                second.problem?.contains("has a log that was truncated") == true, "\(size): \(second.problem ?? "")")
            try second.close()
        }
    }

    @Test(
        "A42: contents that are overwritten in place, without another size, are noticed",
        arguments: ["dld.db", "dld.db-wal"])
    func overwritten(name: String) async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample()], now: 1)
        // A change within the tick in which the store itself wrote has no time of its own.
        try await Task.sleep(for: .milliseconds(20))
        let descriptor = open(directory.file(name), O_WRONLY)
        #expect(pwrite(descriptor, "another's", 9, 0) == 9)
        close(descriptor)
        await expectDisplaced(store)
        #expect(store.problem?.contains("overwritten") == true)
        try store.close()
    }

    @Test("what an administrator does with a shell of SQLite is no fault")
    func shell() async throws {
        let store = try TaskStore(directory: directory.path)
        let tasks = try await store.add((0..<2_000).map { .sample("https://example.org/\($0)") }, now: 1)
        let path = directory.file("dld.db")
        func size() throws -> Int { try StoreFixture.bytes(of: path).count }
        func perform(_ sql: String) throws {
            try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: sql) }
        }
        try perform("PRAGMA wal_checkpoint(TRUNCATE)")
        _ = try await store.add([.sample()], now: 2)
        let before = try size()
        try perform("DELETE FROM task WHERE id > 10; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        #expect(try size() < before && tasks.count == 2_000)
        _ = try await store.add([.sample("https://example.org/last")], now: 3)
        #expect(store.problem == nil)
        #expect(try urls(store).count == 10)
        try perform("DELETE FROM task; VACUUM")
        _ = try await store.emptyLog()
        _ = try await store.add([.sample()], now: 4)
        #expect(store.problem == nil && copies.isEmpty)
        try store.close()
    }

    @Test("a look is enough for what is held to be saved")
    func reading() async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample()], now: 1)
        try #require(unlink(directory.file("dld.db")) == 0)
        _ = try store.counts(owner: nil)
        #expect(copies.count == 1)
        try store.close()
    }

    @Test("what nobody had noticed until the end is saved then")
    func closing() async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample()], now: 1)
        for name in ["dld.db", "dld.db-wal", "dld.db-shm"] { try #require(unlink(directory.file(name)) == 0) }
        try store.close()
        #expect(names == copies && copies.count == 1)
    }

    @Test("a file that was put in the database's place stays as it is, also when the store is closed")
    func replaced() async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample("https://example.org/kept")], now: 1)
        for name in ["dld.db", "dld.db-wal"] {
            try #require(unlink(directory.file(name)) == 0)
            try directory.write("another's", to: name)
        }
        await expectDisplaced(store)
        try store.close()
        for name in ["dld.db", "dld.db-wal"] {
            #expect(try StoreFixture.bytes(of: directory.file(name)) == Array("another's".utf8))
        }
    }

    @Test("what is put back goes on as if nothing had been")
    func putBack() async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample()], now: 1)
        try #require(rename(directory.file("dld.db"), directory.file("elsewhere")) == 0)
        await expectDisplaced(store)
        try #require(rename(directory.file("elsewhere"), directory.file("dld.db")) == 0)
        _ = try await store.add([.sample()], now: 1)
        #expect(store.problem == nil)
        try store.close()
    }

    @Test("a copy that cannot be made is told of, and the daemon is not to be ended")
    func noCopy() async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample()], now: 1)
        // A non-empty directory has the draft's name.
        try directory.makeDirectory("dld.db.rescuing-\(getpid())")
        try directory.write("", to: "dld.db.rescuing-\(getpid())/x")
        try #require(unlink(directory.file("dld.db")) == 0)
        await #expect(throws: StoreError.self) { _ = try await store.add([.sample()], now: 1) }
        #expect(store.problem?.contains("could not be saved") == true && copies.isEmpty)
        try store.close()
    }

    @Test("a copy of a database that somebody opened since stays beside it, and is told of")
    func foreignCopy() async throws {
        let first = try TaskStore(directory: directory.path)
        _ = try await first.add([.sample("https://example.org/1")], now: 1)
        try first.close()
        let kept = try TemporaryDirectory()
        let bytes = try StoreFixture.bytes(of: directory.file("dld.db"))
        let second = try TaskStore(directory: directory.path)
        try #require(unlink(directory.file("dld.db")) == 0)
        await expectDisplaced(second)
        try second.close()
        // The administrator restores an older backup.
        let descriptor = open(directory.file("dld.db"), O_WRONLY | O_CREAT | O_EXCL, 0o600)
        try #require(write(descriptor, bytes, bytes.count) == bytes.count)
        close(descriptor)
        _ = unlink(directory.file("dld.db-wal"))
        let third = try TaskStore(directory: directory.path)
        #expect(third.notes.count == 1 && copies.count == 1, "\(third.notes)")
        #expect(try urls(third) == ["https://example.org/1"])
        try third.close()
        withExtendedLifetime(kept) {}
    }

    @Test("of several copies without a database, a person chooses")
    func several() async throws {
        let store = try TaskStore(directory: directory.path)
        try store.close()
        try #require(rename(directory.file("dld.db"), directory.file("dld.db.rescued-1")) == 0)
        try #require(link(directory.file("dld.db.rescued-1"), directory.file("dld.db.rescued-2")) == 0)
        #expect { _ = try TaskStore(directory: directory.path) } throws: { error in
            if case .missing(let text) = error as? StoreError { text.contains("dld.db.rescued-2") } else { false }
        }
        #expect(copies.count == 2 && !names.contains("dld.db"))
    }

    @Test("a log without its database is not thrown away")
    func logAlone() async throws {
        let store = try TaskStore(directory: directory.path)
        _ = try await store.add([.sample()], now: 1)
        let place = try TemporaryDirectory()
        let log = try StoreFixture.bytes(of: directory.file("dld.db-wal"))
        let descriptor = open(place.file("dld.db-wal"), O_WRONLY | O_CREAT, 0o600)
        try #require(write(descriptor, log, log.count) == log.count)
        close(descriptor)
        #expect { _ = try TaskStore(directory: place.path) } throws: { error in
            if case .missing(let text) = error as? StoreError { text.contains("dld.db-wal") } else { false }
        }
        #expect(try StoreFixture.bytes(of: place.file("dld.db-wal")) == log)
        try store.close()
    }
}
