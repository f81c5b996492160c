import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Texts of servers and of other users that would drive a terminal or forge a line, on everything that shows a task.
@Suite(
    "Hostile texts of others", .serialized, .timeLimit(.minutes(3)),
    .enabled(if: isRoot, "only root can become other users"))
struct HostileTextTests {
    private static let alice = UInt32(64_101)
    /// A control sequence in one C1 character, a right-to-left override, a line separator and a zero-width space.
    private static let marks = "\u{9B}31m\u{202E}\u{2028}\u{200B}"
    /// A title for the terminal's window.
    private static let title = "\u{1B}]0;pwn\u{7}"

    private let place: TemporaryDirectory
    private let phrase: RawServer
    private let location: RawServer
    private let disposition: RawServer
    private let daemon: DaemonProcess

    init() async throws {
        place = try TemporaryDirectory()
        func server(_ head: String) throws -> RawServer {
            try RawServer([Array("HTTP/1.1 \(head)\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx".utf8)])
        }
        let text = Self.title + Self.marks
        phrase = try server("403 \(text)")
        location = try server("302 \(text)\r\nLocation: http://127.0.0.1:1/\(text)")
        disposition = try server("200 \(text)\r\nContent-Disposition: attachment; filename=\"a\(text).txt\"")
        daemon = try DaemonProcess(
            configuration: "control: {mode: 0666}\ndownloads: {layout: per-user}\n" + quickRetries, mode: 0o755)
        try await daemon.start()
    }

    private func dlctl(_ arguments: String...) async throws -> Outcome {
        try await run(
            ["setpriv", "--reuid", "\(Self.alice)", "--regid", "\(Self.alice)", "--clear-groups"]
                + [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments, within: .seconds(60))
    }

    /// Adds her tasks, with hostile texts wherever one is accepted, and waits for their ends.
    private func addAll() async throws -> [String] {
        let marks = Self.marks
        let added = [
            try await dlctl("add", "--batch", "b\(marks)", "--key", "k\(marks)", phrase.url("/p\(marks)")),
            try await dlctl("add", "--batch", "b\(marks)", "-d", "d\(marks)", disposition.url("/q\(marks)")),
            try await dlctl("add", "-o", "o\(marks)", location.url("/r\(marks)")),
        ]
        let ids = added.flatMap(\.lines)
        try #require(ids.count == 3, "\(added)")
        for id in ids { _ = try await daemon.settled(TaskID(Int64(id) ?? 0)) }
        return ids
    }

    private func expectPlain(_ text: String, _ what: String, at location: SourceLocation = #_sourceLocation) {
        let hidden = text.unicodeScalars.filter { $0 != "\n" && $0.isHidden }
        #expect(hidden.isEmpty, "\(what): \(text.debugDescription)", sourceLocation: location)
    }

    /// Returns the output of a program on a terminal without the control sequences that it writes itself.
    private func shown(on terminal: PseudoTerminal) -> String {
        // ECMA-48, section 5.4. CR moves the cursor, and CAN ends a sequence of an earlier program.
        let text = terminal.output.replacing(
            #/\x1B\[[0-?]*[ -\/]*[@-~]|\x1B[()][0AB]|\x1B[=>78]/#, with: "")
        var plain = String.UnicodeScalarView()
        plain.append(contentsOf: text.unicodeScalars.filter { $0 != "\r" && $0 != "\u{18}" })
        return String(plain)
    }

    @Test("A22: no list, screen, event, hook or log has a control character or a mark of direction from others")
    func surfaces() async throws {
        let (inputs, variables, messages) = (place.file("inputs"), place.file("variables"), place.file("messages"))
        let command =
            "cat >>'\(inputs)'; env | grep -a -c ^DLD_ >>'\(variables)'; "
            + "echo \"$DLD_URL $DLD_ERROR $DLD_MESSAGE\" | tr -d '\\200-\\377' >>'\(messages)'; "
            + "[ \"$DLD_EVENT\" != completed ] || [ -f \"$DLD_PATH\" ]"
        let hook = try ChildProcess(
            [
                DaemonProcess.program("dlctl"), "--socket", daemon.socket, "events", "--cursor", "h", "--retries", "0",
                "--exec", command,
            ], environment: ["XDG_STATE_HOME": place.path, "DLD_SOCKET": nil])
        try await eventually(that: "the cursor is stored") { exists(place.file("dld/hooks/h")) }
        let ids = try await addAll()
        var commands = [
            ["list"], ["list", "--json"], ["list", "--columns", "id,name,url,path,batch,key,error"], ["events"],
            ["events", "--json"], ["queue", "list"], ["queue", "list", "--json"], ["status"], ["status", "--json"],
            ["show"] + ids, ["show", "--json"] + ids, ["watch"] + ids, ["watch", "--json"] + ids, ["wait"] + ids,
            ["retry", "424242", ids[1]], ["list", "--batch", Self.marks], ["rpc", "task.list"],
            ["rpc", "task.\(Self.marks)"], ["show", Self.marks],
        ]
        commands += ids.map { ["rpc", "task.get", "{\"id\":\($0)}"] }
        for command in commands {
            let outcome = try await daemon.dlctl(command)
            #expect(!(outcome.output + outcome.error).isEmpty, "\(command)")
            expectPlain(outcome.output + outcome.error, "\(command)")
        }
        let done = try await eventually(have: "a command for each event") {
            let done = (try? text(of: variables))?.split(separator: "\n") ?? []
            return done.count >= 3 * 2 + 2 ? done : nil
        }
        // Each event sets 15 variables, and no text of others sets one more.
        #expect(Set(done) == ["15"])
        // A variable has the bytes of a name as they are, but no control character.
        expectPlain(try text(of: messages), "the variables of a command")
        expectPlain(try text(of: inputs).replacing("}{", with: "}\n{"), "the input of a command")
        #expect(!exists(place.file("dld/hooks/h.failed")), "the path leads to the file")
        expectPlain(hook.standardError, "the hook")
        expectPlain(daemon.log, "the log")
        #expect(daemon.log.split(separator: "\n").allSatisfy { $0.hasPrefix("dld: ") }, "\(daemon.log)")
    }

    @Test("A22: top and watch draw hostile texts without a control sequence of theirs")
    func screens() async throws {
        func screen(_ arguments: [String]) throws -> PseudoTerminal {
            try PseudoTerminal(
                [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments, columns: 200, rows: 50)
        }
        let open = try screen(["watch"])
        try await open.wait(for: "0 active, 0 waiting")
        let ids = try await addAll()
        try await open.wait(for: "task \(ids[2])")
        open.type("\u{3}")
        #expect(try await open.child.wait() == .exited(130))
        expectPlain(shown(on: open), "watch")
        let some = try screen(["watch"] + ids)
        #expect(try await some.child.wait() == .exited(1))
        expectPlain(shown(on: some), "watch \(ids)")
        let top = try screen(["top"])
        try await top.wait(for: "q quit")
        top.type("F")
        try await top.wait(for: "protocol not allowed")
        for _ in ids {
            top.type("\r")
            try await Task.sleep(for: .milliseconds(200))
            top.type("q")
            top.type("j")
        }
        top.type("H")
        try await top.wait(for: "127.0.0.1:\(phrase.port)")
        top.type("/" + Self.marks + "\r")
        try await top.wait(for: "[all, search ")
        top.type("\u{3}")
        #expect(try await top.child.wait() == .exited(130))
        expectPlain(shown(on: top), "top")
        #expect(shown(on: top).contains("\\u{9B}31m\\u{202E}"))
    }

    @Test("A22: a name, a batch, a key or a URL with a line end or an escape character is refused, and names its field")
    func refused() async throws {
        for hostile in ["a\r\nDLD_ID=7", "a\u{1B}]0;pwn", "a\u{7F}"] {
            for option in ["--batch", "--key", "--output", "--directory", "--user-agent"] {
                let outcome = try await dlctl("add", option, hostile, "http://127.0.0.1:1/f")
                #expect(outcome.status == .exited(64) && outcome.error.contains("\(option): "), "\(outcome)")
                expectPlain(outcome.error, option)
            }
            let outcome = try await dlctl("add", "http://127.0.0.1:1/\(hostile)")
            #expect(!outcome.succeeded, "\(outcome)")
            expectPlain(outcome.error, "URL")
        }
        #expect(try daemon.tasks().isEmpty)
    }
}
