import Glibc
import Logging
import TaskModel
import TaskStore
import Testing
import Transfer

@testable import TaskQueue

@Suite("The log entries about a run of a task")
struct RunLogTests {
    private static func log(_ change: (inout TaskRecord) -> Void = { _ in }) -> RunLog {
        var specification = TaskSpecification(url: "https://example.org/a.iso?sig=*")
        specification.batch = "nightly"
        var record = TaskRecord(
            id: TaskID(42), specification: specification, owner: 1000, lifecycle: TaskLifecycle(), createdAt: 0)
        change(&record)
        return RunLog(record: record, host: "https://example.org:443", now: 0, utcOffset: { _ in 0 })
    }

    private static func outcome(
        _ event: TaskLifecycle.Event, error: TaskFailure? = nil, attempts: Int = 1
    ) throws -> TaskConclusion {
        var lifecycle = TaskLifecycle()
        try lifecycle.apply(.start)
        try lifecycle.apply(event)
        return TaskConclusion(lifecycle: lifecycle, attempts: attempts, failures: 0, error: error)
    }

    private static let end = RunLog.End(
        bytesDone: 1_288_490_189, transferred: 1_288_490_189, duration: 31_204, path: "/d/b.iso")

    @Test("a start is told with the number of the attempt")
    func start() {
        let first = Self.log().started(isBrief: false)
        #expect(first.kind == .started && first.level == .info && first.text == "task 42 started: a.iso")
        #expect(
            first.metadata == [
                "event": "task-started", "task": "42", "batch": "nightly", "host": "https://example.org:443",
                "url": "https://example.org/a.iso?sig=*", "owner": "1000", "attempt": "1",
            ])
        let third = Self.log {
            $0.attempts = 2
            $0.bytesDone = 5
        }.started(isBrief: true)
        #expect(third.level == .debug && third.text == "task 42 started: a.iso (attempt 3)")
        #expect(third.metadata["bytes"] == "5")
    }

    @Test("a completion is told at the level info with its size and time")
    func completion() throws {
        let entry = try #require(Self.log().ended(Self.outcome(.succeed), Self.end, isNews: false))
        #expect(entry.kind == .completed && entry.level == .info)
        #expect(entry.text == "task 42 completed: b.iso, 1.2 GiB in 31 s")
        #expect(entry.metadata["bytes"] == "1288490189" && entry.metadata["seconds"] == "31.204")
        #expect(entry.metadata["attempt"] == "1" && entry.metadata["error"] == nil)
    }

    @Test("F71: a completion whose file is suspicious is a warning that says why")
    func suspicion() throws {
        var end = Self.end
        end.warning = "the server sent a web page"
        let entry = try #require(Self.log().ended(Self.outcome(.succeed), end, isNews: false))
        #expect(entry.kind == .completed && entry.level == .warning)
        #expect(entry.text == "task 42 completed: b.iso, 1.2 GiB in 31 s; warning: the server sent a web page")
    }

    @Test("a continued download is told with the share of its last run, a file that was there as such")
    func shares() throws {
        let log = Self.log { $0.bytesFetched = 1_024 }
        func text(_ log: RunLog, transferred: Int64) throws -> String? {
            var end = Self.end
            (end.bytesDone, end.transferred, end.duration) = (4_096, transferred, 400)
            return log.ended(try Self.outcome(.succeed), end, isNews: false)?.text
        }
        #expect(try text(log, transferred: 3_072) == "task 42 completed: b.iso, 4.0 KiB, the last 3.0 KiB in 0.4 s")
        #expect(try text(Self.log(), transferred: 4_096) == "task 42 completed: b.iso, 4.0 KiB in 0.4 s")
        #expect(try text(Self.log(), transferred: 0) == "task 42 completed: b.iso, 4.0 KiB, already there")
        let upload = Self.log { $0.specification.kind = .upload }
        #expect(try text(upload, transferred: 4_096) == "task 42 completed: b.iso, 4.0 KiB sent in 0.4 s")
    }

    @Test("a failure is told as a warning with the reason, what to do, and the numbers of its cause")
    func failure() throws {
        var end = Self.end
        end.error = TransferError(.io, "cannot write", systemError: EIO)
        let failure = TaskFailure(code: .http(404), message: "there is no such file", httpStatus: 404)
        let entry = try #require(
            Self.log().ended(Self.outcome(.fail, error: failure, attempts: 3), end, isNews: true))
        #expect(entry.kind == .failed && entry.level == .warning)
        #expect(
            entry.text == "task 42 failed: a.iso: there is no such file (http-404); "
                + "check the URL (dlctl set 42 --url URL), or try again: dlctl retry 42")
        #expect(entry.metadata["http-status"] == "404" && entry.metadata["errno"] == "\(EIO)")
        #expect(entry.metadata["error"] == "http-404" && entry.metadata["attempt"] == "3")
    }

    @Test(
        "a wait is told once: as a notice where it ends by itself, as a warning where someone should act",
        arguments: [
            (TaskReason.retry, TaskLogKind.attemptFailed, Logger.Level.notice), (.network, .waiting, .notice),
            (.disk, .waiting, .warning), (.diskFull, .waiting, .warning), (.quota, .waiting, .warning),
        ])
    func waits(reason: TaskReason, kind: TaskLogKind, level: Logger.Level) throws {
        let failure = TaskFailure(code: .connect, message: "m")
        let outcome = try Self.outcome(.park(reason, until: 5_000), error: failure)
        let entry = try #require(Self.log().ended(outcome, Self.end, isNews: true))
        #expect(entry.kind == kind && entry.level == level && entry.metadata["reason"] == .string(reason.rawValue))
        #expect(entry.text.hasPrefix("task 42: "))
        if reason != .quota { #expect(entry.text.contains("(m)") && entry.text.hasSuffix("at 00:00:05")) }
        #expect(Self.log().ended(outcome, Self.end, isNews: false)?.level == .debug)
    }

    @Test(
        "a pause that needs a person is a warning with what to do", arguments: TaskReason.allCases.filter(\.needsPerson)
    )
    func needsPerson(reason: TaskReason) throws {
        let outcome = try Self.outcome(.block(reason), error: TaskFailure(code: .http(403), message: "m"))
        let entry = try #require(Self.log().ended(outcome, Self.end, isNews: true))
        #expect(entry.kind == .needsPerson && entry.level == .warning)
        #expect(entry.text.hasPrefix("task 42 is paused (m): ") && entry.text.contains("dlctl "), "\(entry.text)")
    }

    @Test(
        "what a user's command ended has no entry of its own",
        arguments: [TaskLifecycle.Event.pause, .cancel, .release])
    func commands(event: TaskLifecycle.Event) throws {
        #expect(Self.log().ended(try Self.outcome(event), Self.end, isNews: true) == nil)
    }

    @Test("a duration has units that suit it")
    func spans() {
        #expect(RunLog.span(-1) == "0.0 s" && RunLog.span(950) == "0.9 s" && RunLog.span(31_204) == "31 s")
        #expect(RunLog.span(125_000) == "2 min 5 s" && RunLog.span(12_000_000) == "3 h 20 min")
        #expect(RunLog.seconds(31_204) == "31.204" && RunLog.seconds(5) == "0.005")
    }
}
