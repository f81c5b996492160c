import ControlProtocol
import Foundation
import TaskModel
import TestSupport
import Testing

@testable import dlctl

@Suite("The record of a hook's commands")
struct HookRunTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func run(since: Milliseconds) throws -> HookRun {
        let event = TaskEvent(sequence: 17, at: 0, type: .completed, id: TaskID(7), state: .completed)
        return try #require(HookRun(process: getpid(), since: since, event: event, command: "unzip -q a"))
    }

    @Test("another program finds the commands that have run for a minute, as long as their processes run")
    func found() throws {
        let cursor = try HookCursor(name: "c", directory: place.path) { _ in }
        cursor.record([try run(since: 0), try run(since: 30_000)])
        #expect(HookRun.long(in: place.path, now: 59_999).isEmpty)
        let long = HookRun.long(in: place.path, now: 65_000)
        #expect(long.map(\.cursor) == ["c"])
        #expect(
            long.first?.run.words(now: 65_000)
                == "has run for 1 min 5 s (process \(getpid()), event 17 of task 7): unzip -q a")
        // A process of this number that started at another time.
        let path = place.file("c.running")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try place.write(text.replacing("\"start\":\"", with: "\"start\":\"1"), to: "c.running")
        #expect(HookRun.long(in: place.path, now: 65_000).isEmpty)
        cursor.record([])
        #expect(HookRun.long(in: place.path, now: 65_000).isEmpty)
        #expect(HookRun.long(in: place.file("absent"), now: 65_000).isEmpty)
    }

    @Test("the status in JSON has the commands beside the daemon's own fields, and no field of theirs is missing")
    func json() throws {
        let event = TaskEvent(sequence: 17, at: 0, type: .batchFinished, state: .completed)
        let run = try #require(HookRun(process: getpid(), since: 1, event: event, command: "c"))
        let status = DaemonStatus(
            version: "1.0", pid: 7, uptime: 1, socket: "/s", stateDirectory: "/d", downloadDirectory: "/f",
            libcurl: "8",
            tasks: [:], downloadRate: 0, uploadRate: 0, lastEvent: 0)
        let text = Output(STDOUT_FILENO).encoded(Status.Shown(status: status, hooks: [.init(cursor: "u", run: run)]))
        #expect(text.contains("\"version\":\"1.0\""))
        let hook = "\"cursor\":\"u\",\"event\":17,\"process\":\(getpid()),\"since\":1,\"task\":null}"
        #expect(text.contains("\"hooks\":[{\"command\":\"c\",\(hook)]"), "\(text)")
    }

    @Test("a process that has ended has no record")
    func ended() {
        let event = TaskEvent(sequence: 1, at: 0, type: .completed, id: nil, state: .completed)
        #expect(HookRun(process: .max, since: 0, event: event, command: "c") == nil)
    }
}
