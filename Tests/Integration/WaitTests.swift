import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// `dlctl wait` against a running daemon.
@Suite("Waiting for tasks", .serialized, .timeLimit(.minutes(2)))
struct WaitTests {
    /// Runs dlctl on its own terminal.
    private func onTerminal(_ daemon: DaemonProcess, _ arguments: String) throws -> ChildProcess {
        let command =
            "stty cols 80 rows 24; \(try DaemonProcess.program("dlctl")) --socket \(daemon.socket) \(arguments)"
        return try ChildProcess(
            ["script", "-qec", command, "/dev/null"],
            environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"], directory: daemon.directory.path)
    }

    @Test("add --wait prints the ids, then the path of each file, and runs the command for each that completes")
    func paths() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1_000))], "/none": [.status(404)]])
        let daemon = try await DaemonProcess.started()
        let command = "echo \"$DLD_ID $DLD_EVENT\" >>'\(daemon.directory.file("log"))'"
        let outcome = try await daemon.dlctl(
            "add", "--wait", "--exec", command, "-d", "in", server.url("/a"), server.url("/none"))
        #expect(outcome.status == .exited(1) && outcome.lines == ["1", "2", "\(daemon.downloads)/in/a"], "\(outcome)")
        let log = try String(decoding: Data(contentsOf: URL(filePath: daemon.directory.file("log"))), as: UTF8.self)
        #expect(Set(log.split(separator: "\n")) == ["1 completed"])
        let failing = try await daemon.dlctl("add", "--wait", "--exec", "exit 3", "-o", "b", server.url("/a"))
        #expect(failing.status == .exited(1) && failing.error.contains("it ended with 3"), "\(failing)")
    }

    @Test("with --json a wait that is cut short prints the tasks or names them, and a command prints beside it")
    func json() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1_000))]])
        let daemon = try await DaemonProcess.started()
        let late = try await daemon.dlctl("add", "--wait", "--json", "--paused", "--timeout", "3", server.url("/a"))
        #expect(late.status == .exited(75) && late.output.contains("\"ids\":[1],\"tasks\":[{"), "\(late)")
        #expect(late.error.contains("task 1 is paused: dlctl resume 1"), "\(late)")
        let child = try ChildProcess(
            [
                DaemonProcess.program("dlctl"), "--socket", daemon.socket, "add", "--wait", "--json", "--paused",
                server.url("/a"),
            ])
        try await eventually(that: "the task is named") { child.standardError.contains("task 2 is paused") }
        child.kill(SIGTERM)
        #expect(try await child.wait() == .exited(143))
        #expect(child.standardError.contains("\nqueued: 2\n"), "\(child.standardError)")
        let told = try await daemon.dlctl("add", "--wait", "--json", "--exec", "echo told", server.url("/a"))
        #expect(told.succeeded && told.output.hasPrefix("{\"found\":") && told.error == "told\n", "\(told)")
    }

    @Test("on a terminal, a new upload is told with the URL it goes to")
    func uploadPlace() async throws {
        let daemon = try await DaemonProcess.started()
        let file = daemon.directory.file("a")
        try Data("a".utf8).write(to: URL(filePath: file))
        let child = try onTerminal(daemon, "upload --paused '\(file)' http://127.0.0.1:1/in/")
        #expect(try await child.wait() == .exited(0))
        #expect(child.standardOutput.contains("goes to http://127.0.0.1:1/in/a"), "\(child.standardOutput)")
    }

    @Test("--all and --batch wait for what has not ended; if there is nothing, that is success")
    func selections() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1_000))], "/b": [.serve(Resource(size: 1_000))]])
        let daemon = try await DaemonProcess.started()
        for arguments in [["--all"], ["--batch", "b"]] {
            let none = try await daemon.dlctl(["wait"] + arguments)
            #expect(none.status == .exited(0) && none.error.contains("nothing to wait for"), "\(none)")
            #expect(try await daemon.dlctl(["wait", "--json"] + arguments).output == "[]\n")
        }
        _ = try await daemon.add("--batch", "b", server.url("/a"))
        _ = try await daemon.add("--paused", "--batch", "c", server.url("/b"))
        #expect(try await daemon.dlctl("wait", "--batch", "b").succeeded)
        let timeout = try await daemon.dlctl("wait", "--all", "--timeout", "0.2")
        #expect(timeout.status == .exited(75))
        #expect(try await daemon.dlctl("resume", "2").succeeded)
        let json = try await daemon.dlctl("wait", "--all", "--json")
        let tasks = try JSONDecoder().decode([TaskStatus].self, from: Data(json.output.utf8))
        #expect(tasks.allSatisfy { $0.state == .completed })
    }

    @Test("--batch ends with 1 for a task of the batch that failed before, until it is retried or removed")
    func earlierFailure() async throws {
        let server = try ScriptedServer(["/a": [.status(404)], "/b": [.serve(Resource(size: 1_000))]])
        let daemon = try await DaemonProcess.started()
        let failed = try await daemon.add("--batch", "b", server.url("/a"))
        #expect(try await daemon.settled(failed).state == .failed)
        #expect(try await daemon.dlctl("add", "--batch", "b", "--wait", server.url("/b")).succeeded)
        let waited = try await daemon.dlctl("wait", "--batch", "b")
        #expect(waited.status == .exited(1) && waited.error.contains("task 1 failed: http-404"), "\(waited)")
        #expect(try await daemon.dlctl("remove", "1").succeeded)
        #expect(try await daemon.dlctl("wait", "--batch", "b").status == .exited(0))
    }

    @Test("on a terminal, rows carry ids, the totals stand below them, and a summary ends the wait")
    func bars() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100_000))], "/b": [.status(404)]])
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--paused", server.url("/a"))
        _ = try await daemon.add("--paused", server.url("/b"))
        let child = try onTerminal(daemon, "wait 1 2")
        try await eventually(that: "the rows are shown") { child.standardOutput.contains("of 2 completed") }
        #expect(try await daemon.dlctl("resume", "1", "2").succeeded)
        #expect(try await child.wait() == .exited(1))
        let text = child.standardOutput
        #expect(text.contains("1  paused") && text.contains("of 2 completed"), "\(text)")
        #expect(text.contains("✗ b  task 2 failed: http-404"), "\(text)")
        #expect(text.contains("✓ 1  \(daemon.downloads)/a"), "\(text)")
        #expect(text.contains("1 of 2 tasks completed, 1 failed: 97.7 KiB in"), "\(text)")
        #expect(text.contains("check the URL (dlctl set 2 --url URL), or try again: dlctl retry 2"), "\(text)")
    }

    @Test("Ctrl-C ends the waiting with 130 and tells how to go on; the task does")
    func interrupted() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--start-at", "+1h", "--batch", "x y", "http://127.0.0.1:1/a")
        for (arguments, again) in [
            (["1"], "wait 1"), (["--batch", "x y"], "wait --batch 'x y'"), (["--all"], "wait --all"),
        ] {
            var said = ""
            // Nothing shows from outside that the waiting has begun. A busy machine gets more time.
            for patience in [0.5, 3, 15] where said.isEmpty {
                let child = try ChildProcess(
                    [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "wait"] + arguments)
                try await Task.sleep(for: .seconds(patience))
                child.kill(SIGINT)
                #expect(try await child.wait() == .exited(130))
                said = child.standardError
            }
            #expect(said.contains("dlctl --socket \(daemon.socket) \(again)\n"), "\(said)")
        }
        #expect(try daemon.task(TaskID(1)).state == .waiting)
    }
}
