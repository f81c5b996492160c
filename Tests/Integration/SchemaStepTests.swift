import FoundationEssentials
import GRDB
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

/// Power cuts while steps of the schema go over the tasks of a database.
///
/// The program has the first version alone, so the steps are those of this suite. A further process of the tests
/// performs them (``performSteps()``).
@Suite(
    "Steps from one schema to the next", .serialized, .timeLimit(Torture.patience), .needsStrace, .needsLoopDevices)
struct SchemaStepTests {
    private static let count = 10_000

    /// The schema with two later steps, which write to every task.
    private static var migrator: DatabaseMigrator {
        var migrator = Schema.migrator
        migrator.registerMigration("2", foreignKeyChecks: .immediate) { database in
            try database.execute(
                sql: "ALTER TABLE task ADD COLUMN comment TEXT; UPDATE task SET comment = 'from ' || url")
        }
        migrator.registerMigration("3", foreignKeyChecks: .immediate) { database in
            try database.execute(
                sql: """
                    CREATE TABLE comment (task_id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
                    INSERT INTO comment (task_id, text) SELECT id, comment FROM task;
                    ALTER TABLE task DROP COLUMN comment;
                    """)
        }
        return migrator
    }

    // MARK: The process that performs the steps

    /// The name of the environment variable with the path of the database.
    private static let variable = "DLD_SCHEMA_STEPS"
    private static let database = ProcessInfo.processInfo.environment[variable]

    @Test("the steps of this suite, in a process of their own", .enabled(if: database != nil))
    func performSteps() throws {
        let pool = try DatabasePool(path: #require(Self.database))
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        try Self.migrator.migrate(pool)
        try pool.close()
    }

    private func launchSteps(over daemon: DaemonProcess, under prefix: [String] = []) throws -> ChildProcess {
        let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return try ChildProcess(
            prefix + [bundle, "--testing-library", "swift-testing", "--filter", "SchemaStepTests/performSteps"],
            environment: [Self.variable: "\(daemon.stateDirectory)/dld.db"])
    }

    // MARK: The database

    /// A database of the first version: tasks of several users in several states, with secrets, resume data, events and
    /// names in queue files.
    private struct First {
        let directory: TemporaryDirectory
        var path: String { directory.file("dld.db") }

        init(count: Int) async throws {
            directory = try TemporaryDirectory()
            let store = try TaskStore(directory: directory.path)
            let now = Int64(time(nil)) * 1000
            _ = try await store.add((1...count).map(Self.task), now: now)
            try await store.write((1...count).map { Self.change($0, now: now) }, now: now)
            try store.close()
        }

        private static func task(_ number: Int) -> NewTask {
            var specification = TaskSpecification(kind: .download, url: "http://127.0.0.1:1/\(number)")
            specification.output = "f\(number)"
            if number.isMultiple(of: 4) { specification.batch = "batch" }
            if number.isMultiple(of: 5) { specification.key = "key\(number)" }
            var secrets = TaskSecrets()
            if number.isMultiple(of: 9) { secrets.user = "u\(number)" }
            return NewTask(
                specification: specification, secrets: secrets, owner: number.isMultiple(of: 6) ? 1000 : 0,
                host: "http://127.0.0.1:1", lifecycle: TaskLifecycle(paused: true), path: "/nowhere/f\(number)")
        }

        private static func change(_ number: Int, now: Milliseconds) -> TaskChange {
            let progress = TaskProgress(
                bytesDone: Int64(number), bytesTotal: nil, bytesFetched: 0,
                resumeData: number.isMultiple(of: 8) ? [0x7B, 0x7D] : nil)
            guard number.isMultiple(of: 7),
                let failed = TaskLifecycle(state: .failed, reason: nil, notBefore: nil)
            else { return .checkpoint(TaskID(Int64(number)), progress) }
            let conclusion = TaskConclusion(lifecycle: failed, attempts: 1, failures: 1, finishedAt: now)
            return .concluded(TaskID(Int64(number)), progress, conclusion)
        }
    }

    /// A query over the file itself that counts everything that was there, so that a duplicate row is detected.
    private static let census = """
        SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || count(DISTINCT url) || ' ' || sum(bytes_done = id)
            || ' ' || sum(state = 'failed') || ' ' || sum(owner = 1000) || ' ' || count(key) FROM task;
        SELECT count(*) FROM task_secret WHERE json = '{"user":"u' || task_id || '"}';
        SELECT count(*) FROM task_resume WHERE task_id % 8 = 0 AND data = x'7B7D';
        SELECT sum(iif(type = 'added', count, 0)) || ' ' || sum(type = 'failed') FROM event;
        SELECT sum(paused) || ' ' || sum(failed) || ' ' || sum(bytes_sum) FROM fair_share_group;
        """

    private static func expected(_ count: Int) -> [String] {
        let failed = count / 7
        return [
            "\(count) \(count) \(count) \(count) \(failed) \(count / 6) \(count / 5)", "\(count / 9)", "\(count / 8)",
            "\(count) \(failed)", "\(count - failed) \(failed) \(count * (count + 1) / 2)",
        ]
    }

    /// The steps that are complete in a database, after a check that it has everything, and of each step all or nothing.
    ///
    /// The database is read from a copy: opening it would perform its recovery.
    private func newestStep(_ daemon: DaemonProcess, count: Int, _ context: String) async throws -> String {
        let copy = try TemporaryDirectory()
        for name in ["dld.db", "dld.db-wal"] where exists("\(daemon.stateDirectory)/\(name)") {
            try FileManager.default.copyItem(atPath: "\(daemon.stateDirectory)/\(name)", toPath: copy.file(name))
        }
        let path = copy.file("dld.db")
        let rows = try await run(["sqlite3", path, "PRAGMA integrity_check; \(Self.census)"]).lines
        #expect(rows == ["ok"] + Self.expected(count), "\(context)")
        let newest = try await run(["sqlite3", path, "SELECT max(identifier) FROM grdb_migrations"]).lines.first ?? ""
        let comments = [
            "2": "SELECT count(*) FROM task WHERE comment = 'from ' || url",
            "3": "SELECT count(*) FROM task JOIN comment ON task_id = id WHERE text = 'from ' || url",
        ]
        let names = try await run(["sqlite3", path, ".schema"]).output
        if let sql = comments[newest] {
            #expect(try await run(["sqlite3", path, sql]).lines == ["\(count)"], "\(context)")
        } else {
            #expect(newest == "1" && !names.contains("comment TEXT"), "\(context)")
        }
        #expect(names.contains("CREATE TABLE comment") == (newest == "3"), "\(context)")
        return newest
    }

    /// Checks that the steps and the daemon go on with what a power cut left.
    ///
    /// - Returns: the last step that was complete after the cut.
    @discardableResult
    private func expectAll(_ daemon: DaemonProcess, count: Int, _ context: String) async throws -> String {
        let newest = try await newestStep(daemon, count: count, context)
        if newest == "1" {
            try await daemon.start()
            let status = try JSONDecoder().decode(
                Status.self, from: Data(try await daemon.dlctl("status", "--json").output.utf8))
            #expect(status.tasks["paused"] == count - count / 7 && status.tasks["failed"] == count / 7, "\(context)")
            let batch = try await daemon.dlctl("list", "--batch", "batch", "--limit", "3", "--json")
            let ids = try JSONDecoder().decode([Listed].self, from: Data(batch.output.utf8)).map(\.id)
            #expect(ids == [count - 8, count - 4, count], "\(context) \(batch.error)")
            #expect(try await daemon.terminate() == .exited(0))
        }
        #expect(try await launchSteps(over: daemon).wait() == .exited(0), "\(context)")
        #expect(try await newestStep(daemon, count: count, context) == "3")
        return newest
    }

    private struct Status: Decodable { var tasks: [String: Int] }
    private struct Listed: Decodable { var id: Int }

    // MARK: Power cuts

    /// The known points at which the steps can be interrupted; long torture tries many more.
    private static let cuts: [(call: String, file: String, occurrences: [Int])] = [
        ("pwrite64", "dld.db-wal", [1, 700, 1_300]), ("fdatasync", "dld.db-wal", [1, 2, 3]),
        ("pwrite64", "dld.db", [20]), ("fdatasync", "dld.db", [1]),
    ]

    private static let longCuts: [(call: String, file: String, occurrences: [Int])] = [
        ("fdatasync", "dld.db-wal", Array(1..<17)), ("fdatasync", "dld.db", Array(1..<7)),
        ("pwrite64", "dld.db-wal", Array(stride(from: 1, to: 8_000, by: 31))),
        ("pwrite64", "dld.db", Array(stride(from: 1, to: 2_600, by: 31))),
    ]

    @Test("F7: power that fails while a step goes over the tasks costs none and doubles none")
    func cutSteps() async throws {
        let disks = try await Disks()
        let first = try await First(count: Self.count)
        var number = 0
        // The last step that was complete at each cut.
        var steps: Set<String> = []
        for cut in Torture.isLong ? Self.longCuts : Self.cuts {
            for occurrence in cut.occurrences {
                number += 1
                let context = "F7 at \(cut.call) \(occurrence) of \(cut.file)"
                let daemon = try disks.daemon("case-\(number)", configuration: "")
                try FileManager.default.copyItem(atPath: first.path, toPath: "\(daemon.stateDirectory)/dld.db")
                sync()
                let place = "\(daemon.stateDirectory)/\(cut.file)"
                let death = Injection(cut.call, .kill, occurrence: "\(occurrence)", at: [place])
                let isReached =
                    try await launchSteps(over: daemon, under: death.prefix()).wait() == .killed(signal: SIGKILL)
                if !Torture.isLong { #expect(isReached, "\(context) never came") }
                try disks.cut()
                try await disks.remount()
                try await Invariants(daemon, context: context).atRest()
                steps.insert(try await expectAll(daemon, count: Self.count, context))
                try disks.removeDirectories(of: daemon)
                Torture.count(cuts: isReached ? 1 : 0)
                Torture.note(context + (isReached ? "" : ": not reached"))
                if !isReached { break }
            }
        }
        try await disks.unmount()
        // Some of the cuts must fall between the two steps.
        #expect(steps == ["1", "2", "3"], "\(steps)")
    }

    /// The number of tasks, enough that the steps write more than one page of each table.
    private static let fewer = 500

    @Test("F7, F8: whichever sectors a power cut leaves of a step that was not synced, every task is there once")
    func reordered() async throws {
        let first = try await First(count: Self.fewer)
        let daemon = try DaemonProcess()
        try FileManager.default.copyItem(atPath: first.path, toPath: "\(daemon.stateDirectory)/dld.db")
        let place = try TemporaryDirectory()
        let path = place.file("calls")
        #expect(try await launchSteps(over: daemon, under: WriteLog.prefix(log: path)).wait() == .exited(0))
        try await eventually(that: "strace has written all", within: .seconds(20)) { WriteLog.isComplete(path) }
        let log = try WriteLog(
            path, beneath: [daemon.stateDirectory], over: ["\(daemon.stateDirectory)/dld.db": first.path])
        var generator = SeededGenerator(seed: Torture.seed)
        for _ in 0..<(Torture.isLong ? 200 : 6) {
            let line = Int.random(in: 0...log.end, using: &generator)
            try log.leave(cutAt: line, using: &generator)
            let context = "F7 cut at \(line) of \(log.end), seed \(Torture.seed)"
            try await Invariants(daemon, context: context).atRest()
            try await expectAll(daemon, count: Self.fewer, context)
        }
    }
}
