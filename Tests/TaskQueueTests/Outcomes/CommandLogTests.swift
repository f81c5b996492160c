import Logging
import TaskModel
import Testing

@testable import TaskQueue

@Suite("The log entries about commands")
struct CommandLogTests {
    private static let ids = [TaskID(7), TaskID(3)]

    @Test("one entry tells of all tasks of a command, with their ids")
    func several() throws {
        let caller = Caller(uid: 1000, isAdministrator: false)
        let entry = try #require(CommandLog(.paused, "paused", Self.ids).by(caller).entry())
        #expect(entry.kind == .paused && entry.level == .info && entry.text == "2 tasks paused by uid 1000")
        #expect(
            entry.metadata == [
                "event": "task-paused", "task": ["3", "7"], "count": "2", "caller": "1000", "owner": "1000",
            ])
    }

    @Test("one task is named, and a command that changed nothing has no entry")
    func few() throws {
        let entry = try #require(CommandLog(.removed, "removed", [TaskID(3)]).entry(.debug))
        #expect(entry.text == "task 3 removed" && entry.metadata == ["event": "task-removed", "task": "3"])
        #expect(CommandLog(.removed, "removed", []).entry() == nil)
    }

    @Test("an administrator's command does not tell whose tasks they are")
    func administrator() throws {
        let caller = Caller(uid: 0, isAdministrator: true)
        let entry = try #require(CommandLog(.cancelled, "cancelled", Self.ids).by(caller).entry())
        #expect(entry.metadata["owner"] == nil && entry.metadata["caller"] == "0")
    }

    @Test("a million tasks have one entry with the first ids")
    func many() throws {
        var command = CommandLog(.added, "added", ranges: [1...10, 100...1_000_089])
        command.batch = "big"
        let entry = try #require(command.entry())
        #expect(entry.text == "1000000 tasks of batch big added" && entry.metadata["count"] == "1000000")
        let ids = try #require(entry.metadata["task"].flatMap { if case .array(let ids) = $0 { ids } else { nil } })
        #expect(ids.count == CommandLog.listed && ids.prefix(11).last == "100")
    }

    @Test("tasks that fail with another one are a warning with what to do")
    func dependents() throws {
        let failure = TaskFailure(code: .dependency, message: "task 1, which it depends on, is failed")
        let one = try #require(CommandLog.failed([TaskID(3)], failure))
        #expect(
            one.text == "task 3 failed: task 1, which it depends on, is failed (dependency); once that task has "
                + "completed: dlctl retry 3")
        let both = try #require(CommandLog.failed(Self.ids, failure))
        #expect(both.level == .warning && both.text.hasPrefix("2 tasks failed: ") && both.text.hasSuffix("retry ID"))
        #expect(CommandLog.failed([], failure) == nil)
    }
}
