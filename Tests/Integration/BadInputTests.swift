import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Bad input", .serialized, .timeLimit(.minutes(2)))
struct BadInputTests {
    @Test("A7: a URL, a name or a header that cannot be taken is refused with a message, and nothing is queued")
    func rejectedArguments() async throws {
        let daemon = try await DaemonProcess.started(quickRetries + onlyDownloads)
        let good = "http://127.0.0.1:1/a"
        let cases: [[String]] = [
            [""], ["no url"], ["http://"], ["http://exa mple.org/"], ["http://h:99999/"], ["http://[::1/"],
            ["/etc/passwd"], ["file:///etc/passwd"], ["gopher://127.0.0.1/"], ["http://h/\r\nX: y"],
            ["--output", "..", good], ["--output", "/etc/x", good], ["--output", "../x", good],
            ["--output", "a\nb", good], ["--output", "", good], ["--output", ".dld-x.part", good],
            ["--directory", "../outside", good], ["--directory", "/etc", good],
            ["--header", "X: a\r\nY: b", good], ["--header", "no colon", good], ["--header", "Range: bytes=1-", good],
            ["--checksum", "sha256:12", good], ["--checksum", "crc:00", good],
            ["--no-such-option", good], [],
        ]
        for arguments in cases {
            let outcome = try await daemon.dlctl(["add"] + arguments)
            #expect(outcome.status == .exited(64), "\(arguments): \(outcome)")
            #expect(!outcome.error.isEmpty, "\(arguments)")
            #expect(outcome.output.isEmpty, "\(arguments)")
        }
        #expect(try daemon.tasks().isEmpty)
        #expect(daemon.isRunning)
    }

    @Test("an option with nothing behind its equals sign is refused as empty, and swallows no URL")
    func emptyValues() async throws {
        let daemon = try await DaemonProcess.started()
        let good = "http://127.0.0.1:1/a"
        for option in ["--batch=", "--key=", "--output=", "-o=", "--directory=", "--socket=", "--start-at="] {
            let outcome = try await daemon.dlctl("add", "--paused", option, good)
            #expect(outcome.status == .exited(64), "\(option): \(outcome)")
            #expect(outcome.output.isEmpty, "\(option)")
        }
        let batch = try await daemon.dlctl("add", "--paused", "--batch=", good, good)
        #expect(batch.error == "dlctl: --batch for \(good): is empty\n")
        #expect(try daemon.tasks().isEmpty)
        let socket = try await run([DaemonProcess.program("dlctl"), "--socket=", "status"])
        #expect(socket.status == .exited(64), "\(socket)")
        #expect(socket.error.contains("--socket"), "\(socket)")
    }

    @Test("what the daemon prints of a stranger's text holds no mark that turns the direction of writing (A22)")
    func hiddenMarks() async throws {
        let marks = "\u{61C}\u{202E}\u{E0041}"
        let outcome = try await run([DaemonProcess.program("dld"), "--config", "/no\(marks)where", "--check-config"])
        #expect(outcome.error.contains(#"/no\u{61c}\u{202e}\u{e0041}where"#), "\(outcome)")
        #expect(!outcome.error.unicodeScalars.contains { marks.unicodeScalars.contains($0) }, "\(outcome)")
    }

    @Test("the daemon refuses a path that is empty, and names its option")
    func emptyPaths() async throws {
        for option in ["config", "socket", "state-directory", "download-directory", "queue"] {
            for arguments in [["--\(option)", ""], ["--\(option)=", "--check-config"]] {
                let outcome = try await run([DaemonProcess.program("dld")] + arguments)
                #expect(outcome.status == .exited(64), "\(arguments): \(outcome)")
                #expect(outcome.error.contains("--\(option): is empty"), "\(arguments): \(outcome)")
            }
        }
    }

    @Test("an argument that is not UTF-8 is refused by its number")
    func brokenBytes() async throws {
        let daemon = try await DaemonProcess.started()
        let broken = "exec \"$@\" \"http://127.0.0.1:1/$(printf 'a\\377')\""
        let added = try await run(
            ["sh", "-c", broken, "sh", DaemonProcess.program("dlctl"), "--socket", daemon.socket, "add", "--paused"])
        #expect(added.status == .exited(64), "\(added)")
        #expect(added.error == "dlctl: argument 5 is not valid UTF-8\n")
        #expect(try daemon.tasks().isEmpty)
        let started = try await run(["sh", "-c", broken, "sh", DaemonProcess.program("dld"), "--config"])
        #expect(started.status == .exited(64), "\(started)")
        #expect(started.error.contains("argument 2 is not valid UTF-8"), "\(started)")
    }

    @Test("the events of a task that never was are an error, and those of a removed one are not")
    func unknownEvents() async throws {
        let daemon = try await DaemonProcess.started()
        let unknown = try await daemon.dlctl("events", "99")
        #expect(unknown.status == .exited(1) && unknown.error.contains("no task has the id 99"), "\(unknown)")
        _ = try await daemon.add("--paused", "http://127.0.0.1:1/a")
        #expect(try await daemon.dlctl("remove", "1").succeeded)
        #expect(try await daemon.dlctl("events", "1").succeeded)
    }

    @Test("one bad URL among good ones queues none of them")
    func allOrNone() async throws {
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("add", "http://127.0.0.1:1/a", "file:///etc/passwd")
        #expect(outcome.status == .exited(64))
        #expect(outcome.error.contains("file"))
        #expect(try daemon.tasks().isEmpty)
    }

    @Test("an unknown id is an error, and the others are still done")
    func unknownID() async throws {
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add("--paused", "http://127.0.0.1:1/a")
        for command in ["show", "pause", "resume", "cancel", "retry", "remove", "wait"] {
            let outcome = try await daemon.dlctl(command, "999999")
            #expect(outcome.status == .exited(1), "\(command): \(outcome)")
            #expect(outcome.error.contains("999999"), "\(command): \(outcome)")
        }
        let outcome = try await daemon.dlctl("cancel", "--json", "999999", id.description)
        #expect(outcome.status == .exited(1))
        #expect(outcome.output.contains("\"changed\":1"), "\(outcome)")
        #expect(try daemon.task(id).state == .cancelled)
        #expect(try await daemon.dlctl("show", "twelve").status == .exited(64))
    }

    @Test("without a daemon dlctl ends with 69 and says so")
    func noDaemon() async throws {
        let daemon = try DaemonProcess()
        let outcome = try await daemon.dlctl("status")
        #expect(outcome.status == .exited(69))
        #expect(!outcome.error.isEmpty)
    }

    @Test("a configuration with a typing error is refused with its place and the nearest key")
    func configuration() async throws {
        let daemon = try DaemonProcess(configuration: "log: {level: info}\nlimits:\n  active-taks: 4\n")
        for extra in [[], ["--check-config"]] {
            let child = try daemon.launch(extra: extra)
            #expect(try await child.wait() == .exited(78))
            #expect(child.standardError.contains("dld.yaml:3:3"), "\(child.standardError)")
            #expect(child.standardError.contains("active-tasks"), "\(child.standardError)")
        }
        #expect(!exists(daemon.socket))
        let right = try DaemonProcess(configuration: "limits: {active-tasks: 4}\n")
        let check = try right.launch(extra: ["--check-config"])
        #expect(try await check.wait() == .exited(0), "\(check.standardError)")
    }

    /// Sends `bytes` on a new connection and returns the first line of the response.
    ///
    /// - Parameter goesOn: whether the same connection must answer a valid request afterwards, or must end.
    private func answer(_ daemon: DaemonProcess, to bytes: [UInt8], goesOn: Bool = true) throws -> String {
        let connection = try StreamSocket(path: daemon.socket)
        connection.setReadTimeout(20)
        connection.send(bytes)
        let line = try connection.readLine() ?? ""
        if goesOn {
            connection.send(Array("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"daemon.status\"}\n".utf8))
            #expect(try connection.readLine()?.contains("\"result\"") == true, "after \(line)")
        } else {
            do {
                #expect(try connection.receive().isEmpty, "after \(line)")
            } catch let error as SystemError {
                #expect(error.number == ECONNRESET, "after \(line)")
            }
        }
        return line
    }

    @Test("garbage, a giant line and deep nesting on the socket are answered, and the daemon lives")
    func socket() async throws {
        let daemon = try await DaemonProcess.started()
        let garbage = try answer(daemon, to: Array("{\"jsonrpc\": what?\n".utf8))
        #expect(garbage.contains("-32700"), "\(garbage)")
        let binary = try answer(daemon, to: [0, 0xFF, 0xC0, 0x80, 0x0A])
        #expect(binary.contains("-32700"), "\(binary)")
        let giant = try answer(
            daemon, to: Array(repeating: UInt8(ascii: "x"), count: 1 << 20 + 4096), goesOn: false)
        #expect(giant.contains("-32600"), "\(giant)")
        let open = try answer(daemon, to: Array((String(repeating: "[", count: 100_000) + "\n").utf8))
        #expect(open.contains("\"error\""), "\(open)")
        let brackets = String(repeating: "[", count: 80) + String(repeating: "]", count: 80)
        let deep = try answer(
            daemon,
            to: Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\",\"params\":\(brackets)}\n".utf8))
        #expect(deep.contains("\"error\""), "\(deep)")
        let unknown = try answer(daemon, to: Array("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.ad\"}\n".utf8))
        #expect(unknown.contains("-32601"), "\(unknown)")
        #expect(unknown.contains("task.add"), "\(unknown)")
        #expect(daemon.answers)
        #expect(daemon.isRunning)
    }

    @Test(
        "another user is turned away with 77",
        .enabled(if: isRoot, "only root can become another user"))
    func otherUser() async throws {
        let daemon = try DaemonProcess(mode: 0o755)
        try await daemon.start()
        // The build directory may be inaccessible to the other user.
        let client = daemon.directory.file("dlctl")
        try FileManager.default.copyItem(atPath: DaemonProcess.program("dlctl"), toPath: client)
        let outcome = try await run([
            "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", client, "--socket", daemon.socket,
            "list",
        ])
        #expect(outcome.status == .exited(77), "\(outcome)")
        #expect(!outcome.error.isEmpty)
        #expect(daemon.answers)
    }
}
