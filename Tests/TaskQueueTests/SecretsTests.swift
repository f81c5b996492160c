import FoundationEssentials
import GRDB
import Glibc
import TaskModel
import TaskStore
import TestSupport
import Testing

@testable import TaskQueue

/// The places in which a task's secret is stored, and those in which it never is.
@Suite("Secrets of tasks")
struct SecretsTests {
    /// A way to give a task a secret.
    struct Way: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var kind = TaskKind.download
        /// Whether the task completes with it.
        var completes = true
        /// - Parameters:
        ///   - url: the server's URL without its scheme: `127.0.0.1:PORT/path`.
        var give: @Sendable (_ task: inout TaskSpecification, _ url: String, _ secret: String) -> Void
    }

    static let ways = [
        Way(testDescription: "password") { task, _, secret in (task.user, task.password) = ("u", secret) },
        Way(testDescription: "user") { task, _, secret in (task.user, task.password) = (secret, "p") },
        Way(testDescription: "Authorization") { task, _, secret in task.headers = ["Authorization: Bearer \(secret)"] },
        Way(testDescription: "Cookie") { task, _, secret in task.headers = ["Cookie: a=\(secret)"] },
        Way(testDescription: "cookies") { task, _, secret in
            task.cookies = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t\(secret)"
        },
        Way(testDescription: "login in the URL") { task, url, secret in task.url = "http://u:\(secret)@\(url)" },
        Way(testDescription: "token in the URL") { task, url, secret in task.url = "http://\(url)?token=\(secret)" },
        Way(testDescription: "signature in the URL") { task, url, secret in
            task.url = "http://\(url)?a=b&X-Amz-Signature=\(secret)#c"
        },
        Way(testDescription: "login in a mirror") { task, url, secret in task.mirrors = ["http://u:\(secret)@\(url)"] },
        Way(testDescription: "token in the list's URL", completes: false) { task, url, secret in
            task.checksumURL = "http://\(url)?key=\(secret)"
        },
        Way(testDescription: "token in the referer") { task, url, secret in
            task.referer = "http://u:\(secret)@\(url)?access_token=\(secret)"
        },
        Way(testDescription: "proxy", completes: false) { task, _, secret in
            task.proxy = "http://u:\(secret)@127.0.0.1:9"
        },
        Way(testDescription: "form", kind: .upload) { task, _, secret in task.form = ["token=\(secret)"] },
        Way(testDescription: "upload's login in the URL", kind: .upload) { task, url, secret in
            task.url = "http://u:\(secret)@\(url)"
        },
    ]

    private static let me = Caller(uid: getuid(), isAdministrator: true)
    private let secret = "s3cr3t-\(UInt64.random(in: .min ... .max))"

    private func add(_ way: Way, _ server: ScriptedServer, to fixture: QueueFixture) async throws -> TaskID {
        let url = "127.0.0.1:\(server.port)/a"
        return try await fixture.add("http://\(url)", by: Self.me) { task in
            task.kind = way.kind
            if way.kind == .upload { task.file = fixture.directory.file("source") }
            task.paused = true
            way.give(&task, url, secret)
        }
    }

    private func fixture() async throws -> QueueFixture {
        let fixture = try await QueueFixture()
        try fixture.directory.write("x", to: "source")
        return fixture
    }

    /// Returns the tables that contain the secret.
    private func tables(of fixture: QueueFixture) throws -> [String] {
        let database = try DatabaseQueue(path: fixture.directory.file("state/dld.db"))
        return try database.read { database in
            let tables = try String.fetchAll(database, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
            return try tables.filter { table in
                try Row.fetchAll(database, sql: "SELECT * FROM \"\(table)\"").contains { row in
                    row.contains { _, value in
                        let data = Data.fromDatabaseValue(value) ?? Data()
                        return String(decoding: data, as: UTF8.self).contains(secret)
                            || String.fromDatabaseValue(value)?.contains(secret) == true
                    }
                }
            }
        }
    }

    /// Returns whether the secret occurs in any report about the tasks.
    private func isTold(_ id: TaskID, by fixture: QueueFixture) async throws -> Bool {
        var told: [String] = []
        let status = try await fixture.status(id)
        told.append(String(decoding: try JSONEncoder().encode(status), as: UTF8.self))
        let filter = TaskFilter()
        let page = try await fixture.queue.page(filter, after: nil, limit: 10, newest: nil, for: Self.me)
        told.append(String(decoding: try JSONEncoder().encode(page), as: UTF8.self))
        let (last, pages) = try fixture.queue.events(after: 0, for: Self.me)
        for await page in pages {
            told.append(String(decoding: try JSONEncoder().encode(page), as: UTF8.self))
            if page.contains(where: { $0.sequence >= last }) { break }
        }
        return told.contains { $0.contains(secret) }
    }

    /// Returns whether the database files contain the secret after the log has been checkpointed.
    private func isOnDisk(_ fixture: QueueFixture) async throws -> Bool {
        await fixture.queue.stop()
        try fixture.store.close()
        let state = fixture.directory.file("state")
        return try TemporaryDirectory.names(beneath: state).contains { name in
            let bytes = try Data(contentsOf: URL(filePath: state + "/" + name))
            return bytes.firstRange(of: Data(secret.utf8)) != nil
        }
    }

    @Test("a secret stands in its own table alone, and is erased with success", arguments: ways.filter(\.completes))
    func completed(way: Way) async throws {
        let paths = ["/a", "/a?token=\(secret)", "/a?a=b&X-Amz-Signature=\(secret)"]
        let answer = [ScriptedAnswer.status(200, body: "a")]
        let server = try ScriptedServer(Dictionary(uniqueKeysWithValues: paths.map { ($0, answer) }))
        let fixture = try await fixture()
        let id = try await add(way, server, to: fixture)
        #expect(try tables(of: fixture) == ["task_secret"])
        #expect(try await !isTold(id, by: fixture))
        _ = try await fixture.queue.apply(.resume, to: [id], by: Self.me)
        let status = try await fixture.status(id, once: [.completed, .failed])
        #expect(status.state == .completed, "\(String(describing: status.error))")
        #expect(try tables(of: fixture) == [])
        #expect(try await !isTold(id, by: fixture))
        #expect(try await !isOnDisk(fixture))
    }

    @Test("and with the task's removal, after a failure that nothing tells it in", arguments: ways)
    func removed(way: Way) async throws {
        let server = try ScriptedServer(["/a": [.status(404, body: "not here")]])
        let fixture = try await fixture()
        let id = try await add(way, server, to: fixture)
        _ = try await fixture.queue.apply(.resume, to: [id], by: Self.me)
        _ = try await fixture.status(id, once: [.failed])
        #expect(try tables(of: fixture) == ["task_secret"])
        #expect(try await !isTold(id, by: fixture))
        _ = try await fixture.queue.remove([id], deletesFiles: false, by: Self.me)
        #expect(try tables(of: fixture) == [])
        #expect(try await !isOnDisk(fixture))
    }

    @Test(
        "of a set that was committed, changed or given up nothing is left elsewhere",
        arguments: ["commit", "change", "abort"])
    func set(end: String) async throws {
        let fixture = try await fixture()
        func put(_ note: String) async throws -> Int64 {
            let set = try await fixture.queue.beginStagedBatch(batch: "b", by: Self.me)
            let entries = Self.ways.map { way in
                var task = TaskSpecification(kind: way.kind, url: "http://127.0.0.1:9/a")
                if way.kind == .upload { task.file = fixture.directory.file("source") }
                task.paused = true
                task.key = way.testDescription
                way.give(&task, "127.0.0.1:9/a", secret + note)
                return task
            }
            #expect(try await fixture.queue.put(set, entries, by: Self.me) == entries.count)
            return set
        }
        let set = try await put("")
        if end == "abort" {
            try await fixture.queue.abortStagedBatch(set, by: Self.me)
        } else {
            let changes = try await fixture.queue.commitStagedBatch(set, prune: false, dryRun: false, by: Self.me)
            #expect(changes.added == Self.ways.count)
        }
        if end == "change" {
            let second = try await put("-new")
            let changes = try await fixture.queue.commitStagedBatch(second, prune: false, dryRun: false, by: Self.me)
            #expect(changes.updated == Self.ways.count)
        }
        // The rest of an aborted or committed set is removed in the background.
        let expected = end == "abort" ? [] : ["task_secret"]
        try await eventually(that: "it is swept up", every: .milliseconds(5)) { try tables(of: fixture) == expected }
        let ids = try await fixture.queue.page(TaskFilter(), after: nil, limit: 100, newest: nil, for: Self.me).map(
            \.id)
        _ = try await fixture.queue.remove(ids, deletesFiles: false, by: Self.me)
        #expect(try tables(of: fixture) == [])
        #expect(try await !isOnDisk(fixture))
    }
}
