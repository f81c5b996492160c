import Foundation
import TestSupport
import Testing

@testable import dlctl

@Suite("The process of a hook's command")
struct HookProcessTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func run(_ command: String, variables: [String: String] = [:], input: String = "") -> HookProcess.Ending {
        HookProcess(command: command, variables: variables, input: Array(input.utf8)).run()
    }

    @Test("the command has the input and the variables, whatever they contain")
    func told() throws {
        let odd = "a'b\"c$(touch x)\n`d`"
        let ending = run(
            "cat >'\(place.file("in"))'; printf %s \"$DLD_PATH\" >'\(place.file("path"))'",
            variables: ["DLD_PATH": odd], input: String(repeating: "x", count: 200_000))
        #expect(ending == .success)
        #expect(try String(contentsOfFile: place.file("path"), encoding: .utf8) == odd)
        #expect(try Data(contentsOf: URL(filePath: place.file("in"))).count == 200_000)
    }

    @Test("a command that does not read its input succeeds, and the end of another one is told")
    func endings() {
        #expect(run("true", input: String(repeating: "x", count: 1 << 20)) == .success)
        #expect(run("exit 3") == .failure("it ended with 3"))
        #expect(run("kill -KILL $$") == .failure("signal 9 ended it"))
        #expect(run("no-such-command-at-all 2>/dev/null") == .failure("it ended with 127"))
    }

    @Test("a command that runs for long is named, and one that passes its limit ends with all that it started")
    func limit() async throws {
        let pids = place.file("pids")
        var process = HookProcess(
            command: "trap '' TERM; sleep 60 & echo $! >'\(pids)'; echo $$ >>'\(pids)'; wait; wait", variables: [:],
            input: [])
        process.limit = 0.5
        process.longTime = 0.1
        nonisolated(unsafe) var named: [pid_t] = []
        process.runsLong = { named.append($0) }
        #expect(process.run() == .failure("it did not end after 500 ms, and was killed 5 s later"))
        #expect(named.count == 2, "after 0.1 and 0.4 s")
        let started = try String(contentsOfFile: pids, encoding: .utf8).split(separator: "\n").compactMap { pid_t($0) }
        #expect(started.count == 2 && started.last == named.first)
        // A process that has ended may still wait for its parent.
        func runs(_ process: pid_t) -> Bool {
            let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            return status.map { !$0.contains(") Z ") } ?? false
        }
        // SIGKILL ends the rest of the group a moment after the command.
        try await eventually(that: "all have ended") { !started.contains(where: runs) }
        process = HookProcess(command: "exec sleep 60", variables: [:], input: [], limit: 0.1)
        #expect(process.run() == .failure("it was ended after 100 ms"))
        process = HookProcess(command: "true", variables: [:], input: [], limit: 60)
        #expect(process.run() == .success)
    }

    @Test("the shell records a success alone, and a command's background process holds no lock")
    func recorded() throws {
        let lock = open(place.file("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        #expect(flock(lock, LOCK_EX) == 0)
        let record = place.file("cursor")
        func ending(_ command: String, _ sequence: Int64) -> HookProcess.Ending {
            HookProcess(command: command, variables: [:], input: [], record: (record, sequence, lock)).run()
        }
        #expect(ending("true", 7) == .success)
        #expect(ending("false", 8) == .failure("it ended with 1"))
        #expect(ending("exit 253", 8) == .failure("it ended with 253"))
        #expect(ending("kill -USR1 $$", 8) == .failure("it ended with 138"))
        #expect(ending("sleep 5 >/dev/null 2>&1 &", 9) == .success)
        #expect(try String(contentsOfFile: record, encoding: .utf8) == "done 7\ndone 9\n")
        close(lock)
        let again = open(place.file("lock"), O_RDWR | O_CLOEXEC)
        #expect(flock(again, LOCK_EX | LOCK_NB) == 0)
        close(again)
        try FileManager.default.removeItem(atPath: record)
        try FileManager.default.createDirectory(atPath: record, withIntermediateDirectories: false)
        let lock2 = open(place.file("lock"), O_RDWR | O_CLOEXEC)
        #expect(
            HookProcess(command: "true", variables: [:], input: [], record: (record, 1, lock2)).run() == .unrecorded)
        close(lock2)
    }
}
