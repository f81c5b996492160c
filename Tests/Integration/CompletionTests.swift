import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Completion in real shells, with words of a running daemon.
@Suite("Shell completion", .serialized, .timeLimit(.minutes(2)))
struct CompletionTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    /// Returns what bash offers for the last of `words`.
    private func offers(_ words: [String], _ daemon: DaemonProcess) async throws -> [String] {
        let program = try DaemonProcess.program("dlctl")
        let line = [program] + words
        let quoted = line.map { "'" + $0.replacing("'", with: "'\\''") + "'" }.joined(separator: " ")
        let script = """
            source <('\(program)' completion bash)
            COMP_WORDS=(\(quoted)) COMP_CWORD=\(words.count)
            COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
            _dlctl "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let outcome = try await run(
            ["bash", "-c", script], environment: ["DLD_SOCKET": daemon.socket], directory: place.path)
        #expect(outcome.error == "")
        return outcome.lines.compactMap { $0.split(separator: " ").first.map(String.init) }
    }

    /// Waits until bash offers exactly `expected`, in any order.
    ///
    /// On a busy machine the daemon may need more than the 40 ms that completion gives it.
    private func expect(
        _ words: [String], offer expected: Set<String>, _ daemon: DaemonProcess,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        var offered: [String] = []
        for _ in 0..<20 where offered.isEmpty { offered = try await offers(words, daemon) }
        #expect(offered.count == expected.count && Set(offered) == expected, "\(offered)", sourceLocation: location)
    }

    @Test("fish completes the words of a running daemon, outside of an interactive shell too")
    func fish() async throws {
        let daemon = try await DaemonProcess.started()
        let ids = [
            try await daemon.add("--paused", "--batch", "first", "http://127.0.0.1:1/a"),
            try await daemon.add("--paused", "http://127.0.0.1:1/b"),
        ]
        let program = try DaemonProcess.program("dlctl")
        let cases: [(line: String, offered: [String])] = [
            ("dlctl show ", ids.map(\.description)), ("dlctl show \(ids[0]) ", ["\(ids[1])"]),
            ("dlctl list --batch f", ["first"]), ("dlctl list --st", ["--state"]), ("dlctl queue a", ["apply"]),
        ]
        for (line, expected) in cases {
            var outcome = Outcome?.none
            // The daemon may need more time than completion gives it.
            for _ in 0..<20 where outcome?.lines.isEmpty ?? true {
                outcome = try await run(
                    ["fish", "--no-config", "-c", "\(program) completion fish | source; complete -C '\(line)'"],
                    environment: [
                        "DLD_SOCKET": daemon.socket, "HOME": place.path,
                        "PATH": program.dropLast("/dlctl".count) + ":/usr/bin:/bin",
                    ], directory: place.path)
            }
            let offered = try #require(outcome).lines.compactMap { $0.split(separator: "\t").first.map(String.init) }
            #expect(
                outcome?.error == "" && offered.sorted() == expected.sorted(), "\(line): \(String(describing: outcome))"
            )
        }
    }

    @Test("bash completes the ids to which a command applies, batches, states and hosts")
    func words() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 10))], "/b": [.hang]])
        let daemon = try await DaemonProcess.started()
        let done = try await daemon.add("--wait", "--batch", "first", server.url("/a"))
        let running = try await daemon.add("--batch", "second", server.url("/b"))
        let paused = try await daemon.add("--paused", server.url("/b"))
        try await expect(["pause", ""], offer: ["\(running)"], daemon)
        try await expect(["resume", ""], offer: ["\(paused)"], daemon)
        try await expect(["show", ""], offer: ["\(done)", "\(running)", "\(paused)"], daemon)
        try await expect(["show", "\(paused)", "\(done)"], offer: ["\(done)"], daemon)
        try await expect(["list", "--batch", ""], offer: ["first", "second"], daemon)
        try await expect(["add", "--batch", "s"], offer: ["second"], daemon)
        try await expect(["list", "--state", "comp"], offer: ["completed"], daemon)
        try await expect(["list", "fail"], offer: ["failed"], daemon)
        try await expect(["add", "http:"], offer: [server.url("/")], daemon)
    }

    @Test("in an interactive bash, words are completed behind colons and equals signs, without backslashes")
    func interactive() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--paused", "--batch", "first:one", "http://127.0.0.1:2/a")
        let program = try DaemonProcess.program("dlctl")
        let directory = program.split(separator: "/").dropLast().map { "/" + $0 }.joined()
        let shell = try PseudoTerminal(
            ["bash", "--noprofile", "--norc", "-i"],
            environment: [
                "DLD_SOCKET": daemon.socket, "PATH": directory + ":/usr/bin:/bin", "PS1": "> ", "TERM": "dumb",
                "INPUTRC": "/dev/null",
            ], columns: 120)
        // A bell, which sounds for a late answer, would stand between what is typed and what is completed.
        shell.type("bind 'set bell-style none'; source <(dlctl completion bash); echo com''plete\n")
        try await shell.wait(for: "complete\r\n")
        for (typed, completed) in [
            ("dlctl add http://", "dlctl add http://127.0.0.1:2/"),
            ("dlctl add --wait http://1", "dlctl add --wait http://127.0.0.1:2/"),
            ("dlctl add --json ht", "dlctl add --json http://127.0.0.1:2/"),
            ("dlctl add --now 'http:", "dlctl add --now 'http://127.0.0.1:2/"),
            ("dlctl list --search http:", "dlctl list --search http://127.0.0.1:2/"),
            ("dlctl list --search=http://127.0.0.1:", "dlctl list --search=http://127.0.0.1:2/"),
            ("dlctl list --batch=", "dlctl list --batch=first"), ("dlctl wait --batch first:", "--batch first:one"),
            ("dlctl list --state=pa", "dlctl list --state=paused"),
        ] {
            shell.type("\u{15}" + typed)
            // A tabulator that the daemon does not answer in time is typed again.
            try await eventually(that: "\(typed) becomes \(completed)", every: .milliseconds(300)) {
                if shell.output.contains(completed) { return true }
                shell.type("\t")
                return false
            }
        }
        #expect(!shell.output.contains("http\\:"))
    }

    @Test("A30: a batch's name is never executed by the shell that completes")
    func hostileName() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 10))]])
        let daemon = try await DaemonProcess.started()
        let mark = place.file("executed")
        for name in ["$(touch \(mark))", "`touch \(mark)`", "x;touch \(mark)", "plain"] {
            _ = try await daemon.add("--wait", "--batch", name, server.url("/a"))
        }
        try await expect(["list", "--batch", ""], offer: ["plain"], daemon)
        #expect(!exists(mark))
    }

    @Test("without a daemon, and with one that does not answer, completion offers nothing at once")
    func noDaemon() async throws {
        let daemon = try await DaemonProcess.started()
        let pid = try #require(daemon.pid)
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        let start = ContinuousClock.now
        #expect(try await offers(["show", ""], daemon) == [])
        // Two starts of the program and a shell; the daemon itself has 40 ms.
        #expect(ContinuousClock.now - start < .seconds(5))
    }
}
