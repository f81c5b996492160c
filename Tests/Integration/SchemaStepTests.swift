import FoundationEssentials
import GRDB
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

/// Power cuts during a daemon's schema migration of an earlier database.
@Suite(
    "Steps from one schema to the next", .serialized, .timeLimit(Torture.patience), .needsStrace, .needsLoopDevices)
struct SchemaStepTests {
    private static let count = 10_000

    /// A database of an earlier daemon: tasks of several users in several states, with secrets, resume data, events and
    /// names in queue files.
    private struct Old {
        let directory: TemporaryDirectory
        var path: String { directory.file("dld.db") }

        init(schema: String, count: Int) async throws {
            directory = try TemporaryDirectory()
            let pool = try DatabasePool(path: directory.file("dld.db"))
            try Schema.migrator.migrate(pool, upTo: "v1")
            let now = Int64(time(nil)) * 1000
            try await pool.write { database in
                try database.execute(
                    sql: """
                        CREATE TEMP TABLE number AS
                        WITH RECURSIVE number (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < \(count))
                        SELECT i FROM number;
                        INSERT INTO task (kind, url, output, priority, batch, key, host, path, state, reason, owner,
                            bytes_done, created_at, finished_at)
                        SELECT 'download', 'http://127.0.0.1:1/' || i, 'f' || i, i % 3,
                            iif(i % 4 = 0, 'batch', NULL), iif(i % 5 = 0, 'key' || i, NULL), 'http://127.0.0.1:1',
                            '/nowhere/f' || i, iif(i % 7 = 0, 'failed', 'paused'), iif(i % 7 = 0, NULL, 'user'),
                            iif(i % 6 = 0, 1000, 0), i, \(now), iif(i % 7 = 0, \(now), NULL)
                        FROM number;
                        INSERT INTO task_secret (task_id, json)
                        SELECT i, '{"user":"u' || i || '"}' FROM number WHERE i % 9 = 0;
                        INSERT INTO task_resume (task_id, data) SELECT i, x'7B7D' FROM number WHERE i % 8 = 0;
                        INSERT INTO event (at, type, task_id, owner, state)
                        SELECT \(now), 'added', i, iif(i % 6 = 0, 1000, 0), 'queued' FROM number;
                        DROP TABLE number;
                        """)
            }
            try Schema.migrator.migrate(pool, upTo: schema)
            try pool.close()
        }
    }

    /// A query over the file itself that counts everything that was there, so that a duplicate row is detected.
    private static let census = """
        SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || count(DISTINCT url) || ' ' || sum(bytes_done = id)
            || ' ' || sum(state = 'failed') || ' ' || sum(owner = 1000) || ' ' || count(key) FROM task;
        SELECT count(*) FROM task_secret WHERE json = '{"user":"u' || task_id || '"}';
        SELECT count(*) FROM task_resume WHERE task_id % 8 = 0;
        SELECT count(*) || ' ' || count(DISTINCT sequence) FROM event WHERE type = 'added' AND task_id = sequence;
        """

    private static func expected(_ count: Int) -> String {
        """
        \(count) \(count) \(count) \(count) \(count / 7) \(count / 6) \(count / 5)
        \(count / 9)
        \(count / 8)
        \(count) \(count)

        """
    }

    /// Checks a running daemon, and the file that it leaves.
    private func expectAll(_ daemon: DaemonProcess, count: Int, _ context: String) async throws {
        let counts = try await daemon.dlctl("status", "--json")
        let status = try JSONDecoder().decode(Status.self, from: Data(counts.output.utf8))
        #expect(status.tasks["paused"] == count - count / 7 && status.tasks["failed"] == count / 7, "\(context)")
        // The tables of the newest schema alone: sets, and the order of ready tasks.
        let batch = try await daemon.dlctl("list", "--batch", "batch", "--limit", "3", "--json")
        let ids = try JSONDecoder().decode([Listed].self, from: Data(batch.output.utf8)).map(\.id)
        #expect(ids == [count - 8, count - 4, count], "\(context) \(batch.error)")
        #expect(try await daemon.terminate() == .exited(0))
        let rows = try await run([
            "sqlite3", "\(daemon.stateDirectory)/dld.db", "PRAGMA integrity_check; \(Self.census)",
        ])
        #expect(rows.output == "ok\n" + Self.expected(count), "\(context): \(rows.error)")
    }

    /// Checks that the database from before the update is complete.
    private func expectCopy(of schema: String, _ daemon: DaemonProcess, _ context: String) async throws {
        let sql = "PRAGMA integrity_check; SELECT max(CAST(substr(identifier, 2) AS INTEGER)) FROM grdb_migrations;"
        let copy = "\(daemon.stateDirectory)/dld.db.schema-\(schema)"
        let rows = try await run(["sqlite3", copy, sql + Self.census])
        #expect(rows.output == "ok\n\(schema.dropFirst())\n" + Self.expected(Self.count), "\(context): \(rows.error)")
    }

    private struct Status: Decodable { var tasks: [String: Int] }
    private struct Listed: Decodable { var id: Int }

    private struct Cut: Sendable {
        var schema: String
        var call: String
        var file: String
        var occurrence: Int
    }

    /// The known points at which the migrations can be interrupted; long torture tries many more.
    private static let cuts: [Cut] = [
        Cut(schema: "v1", call: "pwrite64", file: "dld.db-wal", occurrence: 1),
        Cut(schema: "v1", call: "pwrite64", file: "dld.db-wal", occurrence: 700),
        Cut(schema: "v1", call: "fdatasync", file: "dld.db-wal", occurrence: 3),
        Cut(schema: "v1", call: "pwrite64", file: "dld.db", occurrence: 20),
        Cut(schema: "v2", call: "fdatasync", file: "dld.db", occurrence: 1),
        Cut(schema: "v7", call: "fdatasync", file: "dld.db-wal", occurrence: 1),
        Cut(schema: "v9", call: "pwrite64", file: "dld.db-wal", occurrence: 40),
        Cut(schema: "v9", call: "fdatasync", file: "dld.db-wal", occurrence: 1),
        Cut(schema: "v10", call: "fdatasync", file: "dld.db-wal", occurrence: 1),
        Cut(schema: "v15", call: "fdatasync", file: "dld.db-wal", occurrence: 1),
        Cut(schema: "v1", call: "pwrite64", file: "dld.db.copying-schema", occurrence: 20),
        Cut(schema: "v10", call: "rename", file: "dld.db.copying-schema", occurrence: 1),
    ]

    private static let kinds: [(call: String, file: String, occurrences: StrideTo<Int>)] = [
        ("fdatasync", "dld.db-wal", stride(from: 1, to: 17, by: 1)),
        ("fdatasync", "dld.db", stride(from: 1, to: 7, by: 1)),
        ("pwrite64", "dld.db-wal", stride(from: 1, to: 4_000, by: 97)),
        ("pwrite64", "dld.db", stride(from: 1, to: 1_300, by: 61)),
        ("pwrite64", "dld.db.copying-schema", stride(from: 1, to: 1_300, by: 61)),
    ]

    private static var longCuts: [Cut] {
        var cuts: [Cut] = []
        for schema in ["v1", "v2", "v5", "v7", "v8", "v9", "v10", "v15"] {
            for (call, file, occurrences) in kinds {
                cuts += occurrences.map { Cut(schema: schema, call: call, file: file, occurrence: $0) }
            }
        }
        return cuts
    }

    @Test("F7: power that fails while a step goes over the data of an earlier schema costs no task and doubles none")
    func cutSteps() async throws {
        let disks = try await Disks()
        var old: [String: Old] = [:]
        // The last schema committed at each cut.
        var schemas: Set<String> = []
        for (number, cut) in (Torture.isLong ? Self.longCuts : Self.cuts).enumerated() {
            let context = "F7 from \(cut.schema) at \(cut.call) \(cut.occurrence) of \(cut.file)"
            let daemon = try disks.daemon("case-\(number)", configuration: "")
            let database: Old
            if let made = old[cut.schema] {
                database = made
            } else {
                database = try await Old(schema: cut.schema, count: Self.count)
                old[cut.schema] = database
            }
            try FileManager.default.copyItem(atPath: database.path, toPath: "\(daemon.stateDirectory)/dld.db")
            sync()
            let place = "\(daemon.stateDirectory)/\(cut.file)"
            let death = Injection(cut.call, .kill, occurrence: "\(cut.occurrence)", at: [place])
            let child = try daemon.launch(under: death.prefix())
            try await eventually(that: "it answers or is dead", within: .seconds(60), every: .milliseconds(5)) {
                child.poll() != nil || daemon.answers
            }
            let isReached = child.poll() == .killed(signal: SIGKILL)
            if !Torture.isLong { #expect(isReached, "\(context) never came") }
            try disks.cut()
            try await daemon.kill()
            try await disks.remount()
            schemas.insert(try await reached(daemon))
            try await Invariants(daemon, context: context).atRest()
            try await daemon.start()
            try await expectAll(daemon, count: Self.count, context)
            try await expectCopy(of: cut.schema, daemon, context)
            try disks.removeDirectories(of: daemon)
            Torture.count(cuts: isReached ? 1 : 0)
            Torture.note(context + (isReached ? "" : ": not reached"))
        }
        try await disks.unmount()
        // Some of the cuts must fall between two migrations.
        #expect(schemas.count >= 3 && !schemas.isDisjoint(with: ["v2", "v3", "v4", "v5", "v6"]), "\(schemas)")
    }

    /// Returns the newest committed schema, read from a copy: opening the database itself would perform the daemon's
    /// recovery.
    private func reached(_ daemon: DaemonProcess) async throws -> String {
        let copy = try TemporaryDirectory()
        for name in ["dld.db", "dld.db-wal"] where exists("\(daemon.stateDirectory)/\(name)") {
            try FileManager.default.copyItem(atPath: "\(daemon.stateDirectory)/\(name)", toPath: copy.file(name))
        }
        let sql = "SELECT identifier FROM grdb_migrations ORDER BY CAST(substr(identifier, 2) AS INTEGER) DESC LIMIT 1"
        return try await run(["sqlite3", copy.file("dld.db"), sql]).lines.first ?? ""
    }

    /// The number of tasks, enough that the migrations write more than one page of each table.
    private static let fewer = 500

    @Test("F7, F8: whichever sectors a power cut leaves of a step that was not synced, every task is there once")
    func reordered() async throws {
        let old = try await Old(schema: "v1", count: Self.fewer)
        let daemon = try DaemonProcess()
        try FileManager.default.copyItem(atPath: old.path, toPath: "\(daemon.stateDirectory)/dld.db")
        let place = try TemporaryDirectory()
        let path = place.file("calls")
        try await daemon.start(under: WriteLog.prefix(log: path))
        try await daemon.kill()
        try await eventually(that: "strace has written all", within: .seconds(20)) { WriteLog.isComplete(path) }
        let log = try WriteLog(
            path, beneath: [daemon.stateDirectory], over: ["\(daemon.stateDirectory)/dld.db": old.path])
        var generator = SeededGenerator(seed: Torture.seed)
        for _ in 0..<(Torture.isLong ? 200 : 6) {
            let line = Int.random(in: 0...log.end, using: &generator)
            try log.leave(cutAt: line, using: &generator)
            let context = "F7 cut at \(line) of \(log.end), seed \(Torture.seed)"
            try await Invariants(daemon, context: context).atRest()
            try await daemon.start()
            try await expectAll(daemon, count: Self.fewer, context)
        }
    }
}
