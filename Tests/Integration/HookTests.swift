import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// `dlctl events --exec` against a running daemon.
@Suite("Hooks", .serialized, .timeLimit(Torture.patience))
struct HookTests {
    private let place: TemporaryDirectory
    /// The file to which the commands append a line `SEQUENCE ID EVENT`.
    private let log: String

    init() throws {
        place = try TemporaryDirectory()
        log = place.file("log")
    }

    private var command: String { "echo \"$DLD_SEQUENCE $DLD_ID $DLD_EVENT\" >>'\(log)'" }

    /// Starts the program that runs a command for each event, with its cursor in `place`.
    private func hook(_ daemon: DaemonProcess, _ arguments: String..., command: String) throws -> ChildProcess {
        try ChildProcess(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "events", "--cursor", "h", "--exec", command]
                + arguments, environment: ["XDG_STATE_HOME": place.path])
    }

    private func lines() -> [[String]] {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    }

    private func waitForCursor() async throws {
        try await eventually(that: "the cursor is stored") { exists(place.file("dld/hooks/h")) }
    }

    @Test("each event runs its command once and in order, whatever is killed: the hook, the daemon or both")
    func kills() async throws {
        let count = Torture.isLong ? 10_000 : 300
        let kills = Torture.isLong ? 50 : 12
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", [.serve(Resource(size: 100))]) }))
        let daemon = try await DaemonProcess.started()
        var random = SeededGenerator(seed: Torture.seed)
        var hook = try hook(daemon, "--on", "started,completed,failed", "--jobs", "4", command: command)
        try await waitForCursor()
        var sent = 0
        for kill in 1...kills {
            let next = count * kill / kills
            let urls = (sent..<next).map { server.url("/\($0)") }
            let input = try place.write(urls.joined(separator: "\n"), to: "list.txt")
            #expect(try await daemon.dlctl("add", "--input", input).succeeded)
            sent = next
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...600, using: &random)))
            if kill % 3 != 0 { hook.kill(SIGKILL) }
            if kill % 3 != 1 { try await daemon.kill() }
            if kill % 3 != 0 { _ = try await hook.wait() }
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...100, using: &random)))
            if kill % 3 != 1 { try await daemon.start() }
            if kill % 3 != 0 {
                hook = try self.hook(daemon, "--on", "started,completed,failed", "--jobs", "4", command: command)
            }
        }
        try await eventually(that: "every download is done", within: .seconds(Torture.isLong ? 600 : 60)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        let journal = try await daemon.dlctl(
            "events", "--on", "started,completed,failed", "--json", "--after", "0")
        let expected = journal.lines.count
        try await eventually(that: "every command has run", within: .seconds(Torture.isLong ? 600 : 60)) {
            lines().count >= expected
        }
        let found = lines()
        #expect(Set(found).count == found.count, "nothing ran twice")
        #expect(found.filter { $0.last == "completed" }.count == count, "nothing was missed")
        #expect(found.count == expected)
        for (id, events) in Dictionary(grouping: found, by: { $0[1] }) {
            let numbers = events.compactMap { Int($0[0]) }
            #expect(numbers == numbers.sorted(), "the events of task \(id) are in order")
            #expect(events.last?.last == "completed")
        }
        Torture.note("hooks: \(kills) kills, \(found.count) commands for \(count) downloads")
    }

    @Test("a command that fails runs again, and is given up into a file that is named")
    func failures() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))], "/b": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        let command = "echo \"$DLD_ID\" >>'\(log)'; [ \"$DLD_ID\" -ne 1 ]"
        let hook = try hook(daemon, "--on", "completed", "--retries", "1", command: command)
        try await waitForCursor()
        #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded)
        #expect(try await daemon.dlctl("add", "--wait", server.url("/b")).succeeded)
        let kept = place.file("dld/hooks/h.failed")
        try await eventually(that: "the event is given up") { exists(kept) }
        try await eventually(that: "the other task's command has run") { lines().contains(["2"]) }
        #expect(lines().filter { $0 == ["1"] }.count == 2)
        try await eventually(that: "a message names the file") { hook.standardError.contains(kept) }
        #expect(try text(of: kept).contains("\"id\":1"))
    }

    @Test("a command that hangs is named by the status of its user, also to the next run, and ended by its limit")
    func hanging() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        let first = try hook(daemon, "--on", "completed", command: "sleep 600")
        try await waitForCursor()
        #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded)
        let record = place.file("dld/hooks/h.running")
        try await eventually(that: "the command is recorded") { (try? text(of: record))?.contains("sleep 600") == true }
        first.kill(SIGKILL)
        _ = try await first.wait()
        let since = try text(of: record).replacing(/"since":\d+/, with: "\"since\":1000")
        try since.write(toFile: record, atomically: true, encoding: .utf8)
        let status = try await run(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "status"],
            environment: ["XDG_STATE_HOME": place.path])
        #expect(status.output.contains("hooks      h: has run for"), "\(status)")
        #expect(status.output.contains("of task 1): sleep 600"), "\(status)")
        let next = try hook(
            daemon, "--on", "completed", "--exec-timeout", "1s", "--retries", "0", command: "sleep 600")
        try await eventually(that: "the next run has given up the event") {
            next.standardError.contains("failed: it was ended after 1 s; given up")
        }
        #expect(next.standardError.contains("dlctl: the command has run for"), "\(next.standardError)")
        #expect(exists(place.file("dld/hooks/h.failed")))
    }

    @Test("the time of --timeout ends the hook with 75, and the next run does what was left")
    func timeout() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        for _ in 1...2 { #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded) }
        let first = try hook(
            daemon, "--after", "0", "--on", "completed", "--timeout", "5s", "--retries", "0",
            command: "[ $DLD_ID = 1 ] || sleep 600; \(command)")
        #expect(try await first.wait() == .exited(75))
        #expect(first.standardError.contains("was ended with the time of --timeout; it runs again with the next run"))
        #expect(first.standardError.contains("dlctl: the time of --timeout is over"), "\(first.standardError)")
        #expect(lines().map { $0[1] } == ["1"])
        let second = try hook(daemon, "--on", "completed", command: command)
        try await eventually(that: "the second event is done") { lines().map { $0[1] } == ["1", "2"] }
        second.kill(SIGTERM)
        _ = try await second.wait()
    }

    @Test("the time of --timeout ends what waits for events while the daemon is away", arguments: [true, false])
    func timeoutWithoutDaemon(runsHook: Bool) async throws {
        let daemon = try await DaemonProcess.started()
        let words = runsHook ? ["--exec", command] : ["--follow"]
        let waiting = try ChildProcess(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "events", "--timeout", "3s"] + words,
            environment: ["XDG_STATE_HOME": place.path])
        try await Task.sleep(for: .milliseconds(500))
        try await daemon.kill()
        #expect(try await waiting.wait() == .exited(75), "\(waiting.standardError)")
    }

    @Test("a command that succeeds after SIGTERM is done, and does not run again")
    func lateSuccess() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded)
        let first = try hook(
            daemon, "--after", "0", "--on", "completed", "--timeout", "5s",
            command: "trap '' TERM; sleep 8; \(command)")
        #expect(try await first.wait() == .exited(75))
        #expect(lines().count == 1)
        let second = try hook(daemon, "--on", "completed", "--timeout", "1s", command: command)
        #expect(try await second.wait() == .exited(75))
        #expect(lines().count == 1)
    }

    @Test("a hook that has done all is not told of lost events once the journal is shortened, killed or not")
    func shortenedJournal() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started("events: {count: 20}\n")
        let hook = try hook(daemon, "--on", "completed", command: command)
        try await waitForCursor()
        for _ in 0..<20 { #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded) }
        try await eventually(that: "all is done") { lines().count == 20 }
        hook.kill(SIGKILL)
        _ = try await hook.wait()
        try await eventually(that: "the journal is shortened") {
            try await daemon.dlctl("events", "--after", "0", "--json").lines.count < 40
        }
        let again = try self.hook(daemon, "--on", "completed", command: command)
        #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded)
        try await eventually(that: "the next one is done") { lines().count == 21 }
        again.kill(SIGKILL)
        _ = try await again.wait()
        #expect(again.standardError.isEmpty, "\(again.standardError)")
    }

    @Test("a hook is told what it missed of another database, and does not wait for numbers that never come")
    func otherDatabase() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        for _ in 0..<3 { #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded) }
        let hook = try hook(daemon, "--on", "completed", command: command)
        try await waitForCursor()
        try await daemon.terminate()
        for name in TemporaryDirectory.names(beneath: daemon.stateDirectory) where name.contains("dld.db") {
            #expect(unlink("\(daemon.stateDirectory)/\(name)") == 0)
        }
        try await daemon.start()
        #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded)
        try await eventually(that: "the command has run for an event of the new database") { !lines().isEmpty }
        #expect(lines().map { $0[1] } == ["1"])
        #expect(hook.standardError.contains("has another database than before"), "\(hook.standardError)")
    }

    @Test("a hook runs for what follows a restored backup, though it knows later events of the original")
    func restored() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        func download() async throws { #expect(try await daemon.dlctl("add", "--wait", server.url("/a")).succeeded) }
        var hook = try hook(daemon, "--on", "completed", "--after", "0", command: command)
        try await waitForCursor()
        for _ in 0..<2 { try await download() }
        let backup = place.file("backup.db")
        #expect(try await daemon.dlctl("backup", backup).succeeded)
        try await download()
        try await eventually(that: "three commands have run") { lines().count == 3 }
        hook.kill(SIGKILL)
        _ = try await hook.wait()
        try await daemon.terminate()
        let database = "\(daemon.stateDirectory)/dld.db"
        for name in [database, database + "-wal", database + "-shm"] where exists(name) { #expect(unlink(name) == 0) }
        #expect(rename(backup, database) == 0)
        try await daemon.start()
        hook = try self.hook(daemon, "--on", "completed", command: command)
        for _ in 0..<2 { try await download() }
        try await eventually(that: "the commands of the new events have run") { lines().count >= 5 }
        #expect(lines().map { $0[1] } == ["1", "2", "3", "3", "4"])
        withExtendedLifetime(hook) {}
    }

    @Test("a command has the user's environment, its event and no other descriptor")
    func inheritance() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        let command =
            "ls /proc/self/fd >'\(log)'; env | grep ^DLD_ | sort >'\(place.file("env"))'; "
            + "cat >'\(place.file("in"))'; grep ^SigIgn /proc/self/status >'\(place.file("signals"))'"
        let hook = try hook(daemon, "--on", "completed", command: command)
        try await waitForCursor()
        #expect(try await daemon.dlctl("add", "--batch", "b", "--wait", server.url("/a")).succeeded)
        try await eventually(that: "the command has run") {
            try text(of: place.file("dld/hooks/h")).contains("done")
        }
        // 3 is the directory that ls reads.
        #expect(lines().flatMap(\.self) == ["0", "1", "2", "3"])
        let environment = try text(of: place.file("env")).split(separator: "\n").map(String.init)
        #expect(environment.contains("DLD_ID=1") && environment.contains("DLD_BATCH=b"))
        #expect(environment.contains("DLD_PATH=\(daemon.path("a"))"))
        #expect(try text(of: place.file("in")).contains("\"batch\":\"b\""))
        let ignored =
            try text(of: place.file("signals")).split(whereSeparator: \.isWhitespace).last.map(String.init) ?? ""
        // posix_spawn(3) ignores 32 and 33, which the C library uses itself.
        #expect(UInt64(ignored, radix: 16).map { $0 & 0x7FFF_FFFF } == 0, "\(ignored)")
        withExtendedLifetime(hook) {}
    }
}
