import ControlClient
import Foundation
import TaskModel
import TestSupport
import Testing

@testable import dlctl

@Suite("Commands for tasks that have completed")
struct EndedTaskHooksTests {
    @Test("each task that completed has its turn, a failure is told at the end, and the output can go elsewhere")
    func turns() throws {
        let place = try TemporaryDirectory()
        let hooks = EndedTaskHooks(
            command: "echo \"$DLD_ID $DLD_EVENT $DLD_PATH\" >>'\(place.file("log"))'; [ \"$DLD_ID\" -ne 4 ]")
        for (id, state) in [(1, .completed), (2, .failed), (3, .cancelled), (4, .completed)] as [(Int64, TaskState)] {
            var task = sampleTask(id, state)
            task.path = "/d/\(id)"
            hooks.run(task)
        }
        #expect(!hooks.finish())
        #expect(
            try String(contentsOfFile: place.file("log"), encoding: .utf8)
                == "1 completed /d/1\n4 completed /d/4\n")
        let into = open(place.file("output"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(into >= 0)
        defer { close(into) }
        let told = EndedTaskHooks(command: "echo \"$DLD_ID\"", output: into)
        told.run(sampleTask(7, .completed))
        #expect(told.finish())
        #expect(try String(contentsOfFile: place.file("output"), encoding: .utf8) == "7\n")
        let good = EndedTaskHooks(command: "true")
        good.run(sampleTask(1, .completed))
        #expect(good.finish())
    }

    @Test("at the deadline a command is ended, and none begins after it", .timeLimit(.minutes(1)))
    func deadline() throws {
        let place = try TemporaryDirectory()
        let hooks = EndedTaskHooks(
            command: "echo \"$DLD_ID\" >>'\(place.file("log"))'; exec sleep 1000", deadline: .after(seconds: 1))
        for id in [1, 2] as [Int64] { hooks.run(sampleTask(id, .completed)) }
        #expect(!hooks.finish())
        #expect(try String(contentsOfFile: place.file("log"), encoding: .utf8) == "1\n")
    }
}
