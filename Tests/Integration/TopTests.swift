import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// `dlctl top` on a terminal, against a running daemon.
@Suite("The full screen", .serialized, .timeLimit(.minutes(2)))
struct TopTests {
    private static let entrance = "\u{1B}[?1049h"
    private static let departure = "\u{1B}[?1049l"

    private func top(
        _ daemon: DaemonProcess, _ arguments: String..., environment: [String: String?] = [:], columns: UInt16 = 80,
        rows: UInt16 = 24
    ) throws -> PseudoTerminal {
        try PseudoTerminal(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "top"] + arguments,
            environment: environment, columns: columns, rows: rows)
    }

    private func expectRestored(_ terminal: PseudoTerminal) async throws {
        try await eventually(that: "the terminal is restored", within: .seconds(10)) {
            terminal.output.contains(Self.departure) && terminal.isCooked
        }
        #expect(terminal.output.contains("\u{1B}[?25h"), "the cursor is shown")
    }

    private func state(_ daemon: DaemonProcess, _ id: String) async throws -> TaskState {
        try JSONDecoder().decode(
            TaskStatus.self, from: Data(try await daemon.dlctl("show", id, "--json").output.utf8)
        ).state
    }

    @Test("keys pause, resume, cancel after a question, retry, change the priority and the rate, and add a URL")
    func commands() async throws {
        let resource = Resource(size: 1 << 20)
        let server = try ScriptedServer([
            "/a": [.drip(resource, bytesPerSecond: 1000)], "/b": [.drip(resource, bytesPerSecond: 1000)],
        ])
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add(server.url("/a"))
        let terminal = try top(daemon)
        try await terminal.wait(for: "1 active")
        terminal.type("p")
        try await terminal.wait(for: "task 1 paused")
        #expect(try await state(daemon, "1") == .paused)
        terminal.type("r")
        try await terminal.wait(for: "task 1 resumed")
        terminal.type("c")
        try await terminal.wait(for: "cancel task 1, a? y or n")
        terminal.type("n")
        try await terminal.wait(for: "nothing was changed")
        #expect(try await state(daemon, "1") != .cancelled)
        terminal.type("+")
        try await terminal.wait(for: "task 1 has the priority high")
        terminal.type("l50K\r")
        try await terminal.wait(for: "task 1 is limited to 50.0 KiB/s")
        terminal.type("Lconfig\r")
        try await terminal.wait(for: "downloads have no limit (configuration)")
        terminal.type("Lnone\r")
        try await eventually(that: "the limit is none") {
            try await daemon.dlctl("limit", "--json").output.contains(#""downloadSource":"command""#)
        }
        terminal.type("t")
        try await terminal.wait(for: "task 1")
        terminal.type("a\u{1B}[200~\(server.url("/b"))\n\u{1B}[201~\r")
        try await terminal.wait(for: "added task 2")
        terminal.type("cy")
        try await terminal.wait(for: "task 1 cancelled")
        #expect(try await state(daemon, "1") == .cancelled)
        terminal.type("q")
        #expect(try await terminal.child.wait() == .exited(0))
        try await expectRestored(terminal)
    }

    @Test("a refused command says so on the screen, which stays")
    func refused() async throws {
        let server = try ScriptedServer(["/hangs": [.hang]])
        let daemon = try await DaemonProcess.started()
        let terminal = try top(daemon)
        try await terminal.wait(for: "no task runs or waits")
        terminal.type("aftp:bad\r")
        try await terminal.wait(for: "ftp:bad: has no //")
        // The text is corrected in the prompt; Escape with nothing open changes nothing.
        terminal.type(String(repeating: "\u{7F}", count: 7) + server.url("/hangs") + "\r")
        try await terminal.wait(for: "added task 1")
        try await terminal.wait(for: "connecting")
        // A key follows at once, so that the first byte is the Escape key.
        terminal.type("\u{1B}\u{1B}[Bp")
        try await terminal.wait(for: "task 1 paused")
        terminal.type("\u{3}")
        #expect(try await terminal.child.wait() == .exited(130))
        try await expectRestored(terminal)
    }

    @Test("a daemon that is killed is waited for, and the screen goes on with the next one")
    func away() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--start-at", "+1h", "http://127.0.0.1:1/a.iso")
        let terminal = try top(daemon)
        try await terminal.wait(for: "a.iso")
        try await daemon.kill()
        try await terminal.wait(for: "the daemon is away since ")
        terminal.type("p")
        try await terminal.wait(for: "the command was not sent")
        try await daemon.start()
        try await terminal.wait(for: "the daemon is back")
        terminal.type("q")
        #expect(try await terminal.child.wait() == .exited(0))
        try await expectRestored(terminal)
    }

    @Test(
        "a signal restores the terminal before it ends the program",
        arguments: [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGSEGV, SIGABRT])
    func signals(signal: Int32) async throws {
        let daemon = try await DaemonProcess.started()
        let terminal = try top(daemon)
        try await terminal.wait(for: "no task runs or waits")
        #expect(!terminal.isCooked)
        terminal.child.kill(signal)
        let ending = try await terminal.child.wait()
        let isDefect = signal == SIGSEGV || signal == SIGABRT
        #expect(ending == (isDefect ? .killed(signal: signal) : .exited(128 + signal)))
        try await expectRestored(terminal)
    }

    @Test("any size, and any bytes of input, leave a screen that can be ended")
    func storm() async throws {
        let daemon = try await DaemonProcess.started()
        let name = "%1B%5B2J" + "\u{9577}\u{3044}"
        _ = try await daemon.add("--start-at", "+1h", "-o", "長い名前.iso", "http://127.0.0.1:1/\(name)")
        let terminal = try top(daemon, columns: 20, rows: 5)
        try await terminal.wait(for: Self.entrance)
        var random = SeededGenerator(seed: 7)
        for _ in 0..<100 {
            try terminal.resize(
                columns: UInt16.random(in: 1...250, using: &random), rows: UInt16.random(in: 1...80, using: &random))
            // No y, so that nothing is cancelled, and neither Ctrl-Z, Ctrl-C, Escape nor q.
            let bytes = (0..<50).map { _ in UInt8.random(in: 32...255, using: &random) }
            terminal.type(bytes.filter { !Array("yYqa".utf8).contains($0) })
            _ = terminal.output
        }
        try terminal.resize(columns: 80, rows: 24)
        terminal.type("\u{1B}")
        try await Task.sleep(for: .milliseconds(200))
        if terminal.child.poll() == nil { terminal.type("\u{3}") }
        let ending = try await terminal.child.wait()
        #expect(ending == .exited(130) || ending == .exited(0))
        try await expectRestored(terminal)
        #expect(try await state(daemon, "1") != .cancelled)
    }

    @Test("NO_COLOR draws without colours, and still marks the selection")
    func colourless() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--start-at", "+1h", "http://127.0.0.1:1/a.iso")
        for (environment, isColoured) in [(["NO_COLOR": "1"], false), ([:], true)] as [([String: String?], Bool)] {
            let terminal = try top(daemon, environment: environment)
            try await terminal.wait(for: "starts at")
            #expect(terminal.output.contains("\u{1B}[36m") == isColoured)
            #expect(terminal.output.contains("\u{1B}[1;7m"))
            terminal.type("q")
            #expect(try await terminal.child.wait() == .exited(0))
        }
    }

    @Test("a daemon that stands still counts as away, also while it owes an answer to a command")
    func frozen() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--start-at", "+1h", "http://127.0.0.1:1/a.iso")
        let terminal = try top(daemon)
        try await terminal.wait(for: "a.iso")
        let pid = try #require(daemon.pid)
        #expect(kill(pid, SIGSTOP) == 0)
        terminal.type("p")
        try await terminal.wait(for: "no answer to the last command")
        #expect(kill(pid, SIGCONT) == 0)
        try await terminal.wait(for: "the daemon is back")
        terminal.type("q")
        #expect(try await terminal.child.wait() == .exited(0))
    }

    @Test("a terminal that nobody reads does not hold the program")
    func unread() async throws {
        let daemon = try await DaemonProcess.started()
        let terminal = try top(daemon, columns: 200, rows: 60)
        try await terminal.wait(for: "no task runs or waits")
        for width in 100...160 {
            try terminal.resize(columns: UInt16(width), rows: 60)
            try await Task.sleep(for: .milliseconds(20))
        }
        terminal.child.kill(SIGTERM)
        #expect(try await terminal.child.wait(within: .seconds(10)) == .exited(128 + SIGTERM))
    }

    @Test("without a terminal, on a dumb one, and with --json, top refuses and names the other commands")
    func refusals() async throws {
        let daemon = try await DaemonProcess.started()
        let piped = try await daemon.dlctl("top")
        #expect(piped.status == .exited(64) && piped.error.contains("dlctl list"), "\(piped)")
        let json = try await daemon.dlctl("top", "--json")
        #expect(json.status == .exited(64) && json.error.contains("\"field\":\"--json\""), "\(json)")
        let dumb = try top(daemon, environment: ["TERM": "dumb"])
        #expect(try await dumb.child.wait() == .exited(64))
        #expect(dumb.output.contains("TERM is dumb") && !dumb.output.contains(Self.entrance))
        try await daemon.terminate()
        let absent = try top(daemon)
        #expect(try await absent.child.wait() == .exited(69))
        #expect(absent.output.contains("no daemon answers") && !absent.output.contains(Self.entrance))
    }
}

/// `dlctl watch` against a running daemon.
@Suite("Watching tasks", .serialized, .timeLimit(.minutes(2)))
struct WatchingTests {
    private func watch(_ daemon: DaemonProcess, _ arguments: String...) throws -> PseudoTerminal {
        try PseudoTerminal(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "watch"] + arguments,
            environment: ["NO_COLOR": "1"])
    }

    @Test("with ids or a batch, watch ends as wait does, with a summary")
    func ends() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 100_000))], "/b": [.status(404)]])
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--paused", "--batch", "n", server.url("/a"))
        let good = try watch(daemon, "--batch", "n")
        try await eventually(that: "the row is shown") { good.output.contains("1  paused") }
        #expect(try await daemon.dlctl("resume", "1").succeeded)
        #expect(try await good.child.wait() == .exited(0))
        #expect(good.output.contains("1 of 1 task completed: 97.7 KiB"), "\(good.output)")
        _ = try await daemon.add(server.url("/b"))
        let bad = try watch(daemon, "1", "2")
        #expect(try await bad.child.wait() == .exited(1))
        let advice = "check the URL (dlctl set 2 --url URL), or try again: dlctl retry 2"
        #expect(bad.output.contains(advice), "\(bad.output)")
        #expect(try await daemon.dlctl("watch", "9").status == .exited(1))
        #expect(try await daemon.dlctl("watch", "--batch", "n").error.contains("nothing to watch"))
        #expect(try await daemon.dlctl("watch", "active").error.contains("none of your tasks is active"))
        #expect(try await daemon.dlctl("watch", "failed").status == .exited(1))
    }

    @Test("without ids, watch shows what is added later, until Ctrl-C, which ends it with a summary and 130")
    func open() async throws {
        let server = try ScriptedServer([
            "/a": [.serve(Resource(size: 100_000))], "/b": [.status(404)],
            "/c": [.drip(Resource(size: 1 << 20), bytesPerSecond: 1000)],
        ])
        let daemon = try await DaemonProcess.started()
        let terminal = try watch(daemon)
        try await terminal.wait(for: "0 active, 0 waiting")
        _ = try await daemon.add(server.url("/a"), server.url("/b"), server.url("/c"))
        try await terminal.wait(for: "✓ 1  \(daemon.downloads)/a")
        try await terminal.wait(for: "✗ b  task 2 failed: http-404")
        try await terminal.wait(for: "1 active, 0 waiting")
        terminal.type("\u{3}")
        #expect(try await terminal.child.wait() == .exited(130))
        try await terminal.wait(for: "1 task completed, 1 failed: ")
        try await terminal.wait(for: "check the URL (dlctl set 2 --url URL), or try again: dlctl retry 2")
        try await terminal.wait(for: "the tasks go on; to watch them again: dlctl --socket \(daemon.socket) watch")
        #expect(terminal.output.contains("\u{1B}[?25h"), "the cursor is shown")
    }

    @Test("without a daemon and without ids, watch draws nothing")
    func absent() async throws {
        let daemon = try DaemonProcess()
        let terminal = try watch(daemon)
        #expect(try await terminal.child.wait() == .exited(69))
        try await terminal.wait(for: "no daemon answers")
        #expect(!terminal.output.contains("0 active"), "\(terminal.output)")
    }

    @Test("a task tells since when no byte came and when it connects again; lists say so after five seconds")
    func stall() async throws {
        let server = try ScriptedServer([
            "/a": [.hang], "/b": [.drip(Resource(size: 1 << 20), bytesPerSecond: 1000)],
        ])
        let daemon = try await DaemonProcess.started()
        let (silent, running) = (try await daemon.add(server.url("/a")), try await daemon.add(server.url("/b")))
        let task = try await daemon.state(of: running, "to begin") { $0.bytesDone > 0 }
        let since = try #require(task.idleSince)
        #expect(task.reconnectsAt == since + 60_000)
        let words = /connecting, no data for (\d+) s/
        try await eventually(that: "the list says so", within: .seconds(40), every: .milliseconds(500)) {
            try await daemon.dlctl("list").output.contains(words)
        }
        let seconds = try await daemon.dlctl("list").output.firstMatch(of: words)?.1
        #expect(try #require(seconds.flatMap { Int($0) }) >= 5)
        let waiting = try await daemon.state(of: silent, "to wait for a byte") { $0.idleSince != nil }
        #expect(waiting.reconnectsAt == nil && waiting.phase == .connecting)
        #expect(try await daemon.dlctl("pause", "\(running)").succeeded)
        let paused = try await daemon.state(of: running, "to pause") { $0.state == .paused }
        #expect(paused.idleSince == nil && paused.reconnectsAt == nil)
    }

    @Test("a daemon that is killed meanwhile is waited for")
    func away() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--start-at", "+1h", "http://127.0.0.1:1/later.iso")
        let terminal = try watch(daemon)
        try await terminal.wait(for: "later.iso")
        try await daemon.kill()
        try await terminal.wait(for: "the connection to the daemon was lost")
        try await daemon.start()
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1_000))]])
        _ = try await daemon.add(server.url("/a"))
        try await terminal.wait(for: "✓ 2  ")
        try await daemon.kill()
        terminal.type("\u{3}")
        #expect(try await terminal.child.wait() == .exited(130))
    }

    @Test("without a terminal, watch prints a line for each change, or the events as JSON, and ends with the tasks")
    func lines() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1_000))], "/b": [.serve(Resource(size: 1_000))]])
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--start-at", "+4s", server.url("/a"))
        let text = try await daemon.dlctl("watch", "1")
        #expect(text.status == .exited(0) && text.error.isEmpty, "\(text)")
        #expect(text.lines.contains { $0.contains("started") } && text.lines.last?.contains("completed") == true)
        _ = try await daemon.add("--start-at", "+4s", "--batch", "n", server.url("/b"))
        let json = try await daemon.dlctl("watch", "--batch", "n", "--json")
        let events = try json.lines.map { try JSONDecoder().decode(TaskEvent.self, from: Data($0.utf8)) }
        #expect(
            json.status == .exited(0) && events.last?.type == .completed && events.allSatisfy { $0.id?.rawValue == 2 })
    }
}
