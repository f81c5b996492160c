import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Secrets of tasks that fail and are tried again, on everything that shows a task: the history of its attempts, the
/// screens, commands of hooks, messages of webhooks, apps and the completion of shells.
@Suite("Secrets of tasks that are shown", .serialized, .timeLimit(.minutes(3)))
struct ShownSecretsTests {
    /// The prefix of every secret.
    private static let canary = "c4nary"
    /// The number of tasks of ``queue(_:)``.
    private static let count = 11
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    /// Starts a server whose answers let every task fail, and contain secrets.
    private func server() throws -> ScriptedServer {
        let word = Self.canary
        return try ScriptedServer([
            "/go?token=\(word)-sig": [.redirect("/landed?sig=\(word)-hop#access_token=\(word)-hop")],
            "/away": [.redirect("http://u:\(word)-hop@127.0.0.1:1/x?sig=\(word)-hop")],
            "/busy": [.status(500, headers: ["X-Token: \(word)-answer"], body: "\(word)-answer")],
        ])
    }

    /// Writes a queue file whose tasks have secrets in every place that can hold one.
    ///
    /// - Parameter word: the prefix of the secrets.
    private func queue(_ server: ScriptedServer, word: String = canary) throws -> String {
        let host = "127.0.0.1:\(server.port)"
        try place.write("\(word)-password\n", to: "password")
        try place.write("X-Api-Key: \(word)-header\n", to: "header")
        try place.write("content", to: "source")
        return try place.write(
            """
            batch: night
            downloads:
            - {url: 'http://\(host)/go?token=\(word)-sig', output: a}
            - {url: 'http://\(host)/away', output: b, user: anna, password-file: password}
            - url: http://127.0.0.1:1/m
              output: c
              mirrors: ['http://a:\(word)-mirror@\(host)/m?key=\(word)-mirror']
            - {url: 'http://\(host)/d', output: d, checksum-url: 'http://a:\(word)-sums@\(host)/s?key=\(word)-sums'}
            - {url: 'http://\(host)/seg;jsessionid=\(word)-session'}
            - {url: 'http://\(host)/f', output: f, proxy: 'http://p:\(word)-proxy@127.0.0.1:1'}
            - {url: 'https://anna:\(word)-tls@\(host)/g', output: g}
            - url: http://\(host)/busy
              output: h
              header: ['@header']
              referer: http://r:\(word)-referer@h/?sig=\(word)-referer
            - {url: 'ftp://anna:\(word)-ftp@127.0.0.1:1/i', output: i}
            - {url: 'http://\(host)/j?a=1;token=\(word)-sig&private_token=\(word)-sig#sid=\(word)-sig', output: j}
            uploads:
            - {file: source, url: 'http://\(host)/in;token=\(word)-in/x', form: {token: \(word)-field}}

            """, to: "\(word).yaml")
    }

    /// Queues the tasks, and waits until each has failed.
    private func fail(_ daemon: DaemonProcess, _ server: ScriptedServer) async throws -> [String] {
        let applied = try await daemon.dlctl("queue", "apply", queue(server))
        #expect(applied.succeeded, "\(applied)")
        expectSilent(applied, "queue apply")
        let ids = try daemon.tasks().map(\.id.description)
        #expect(ids.count == Self.count)
        try await waitForAll(daemon, ids)
        return ids
    }

    private func waitForAll(_ daemon: DaemonProcess, _ ids: [String]) async throws {
        let waited = try await daemon.dlctl(["wait"] + ids)
        #expect(waited.status == .exited(1), "\(waited)")
        expectSilent(waited, "wait")
    }

    private func expectSilent(_ outcome: Outcome, _ what: String, at location: SourceLocation = #_sourceLocation) {
        expectSilent(outcome.output + outcome.error, what, at: location)
    }

    private func expectSilent(_ text: String, _ what: String, at location: SourceLocation = #_sourceLocation) {
        guard let found = text.firstRange(of: Self.canary) else { return }
        let context = text[..<found.lowerBound].suffix(200) + text[found.lowerBound...].prefix(100)
        Issue.record("\(what) tells a secret: \(context)", sourceLocation: location)
    }

    @Test("A23: no secret is in a history, a plan of changes, a search, an event or the log of a task that was retried")
    func histories() async throws {
        let server = try server()
        let daemon = try await DaemonProcess.started()
        let ids = try await fail(daemon, server)
        #expect(try await daemon.dlctl(["retry"] + ids).succeeded)
        try await waitForAll(daemon, ids)
        let shown = try await daemon.dlctl(["show"] + ids)
        expectSilent(shown, "show")
        #expect(shown.output.contains("jsessionid=REDACTED") && shown.output.contains("http-500"), "\(shown.output)")
        let json = try await daemon.dlctl(["show", "--json"] + ids)
        expectSilent(json, "show --json")
        let details = try JSONDecoder().decode([TaskDetail].self, from: Data(json.output.utf8))
        #expect(details.allSatisfy { $0.history.count >= 2 && $0.history.last?.error != nil })
        let changed = try queue(server, word: Self.canary + "-new")
        var commands = [
            ["list"], ["list", "--json"], ["list", "--columns", "id,name,url,path,error"], ["events"],
            ["events", "--json"], ["status"], ["status", "--json"], ["queue", "list"], ["watch", "--json"] + ids,
            ["watch"] + ids, ["queue", "apply", "--dry-run", changed],
            ["queue", "apply", "--dry-run", "--json", changed],
            ["queue", "apply", "--json", changed], ["rpc", "events.list"],
        ]
        commands += ids.map { ["rpc", "task.get", "{\"id\":\($0)}"] }
        for command in commands {
            let outcome = try await daemon.dlctl(command)
            #expect(!(outcome.output + outcome.error).isEmpty, "\(command)")
            expectSilent(outcome, "\(command)")
        }
        // An administrator must not find out a secret of others letter by letter.
        let found = try await daemon.dlctl("rpc", "task.count", #"{"filter":{"search":"c4nary"}}"#)
        #expect(found.output.contains("\"tasks\":0"), "\(found)")
        expectSilent(daemon.log, "the log")
        let names = TemporaryDirectory.names(beneath: daemon.downloads)
        #expect(!names.contains { $0.contains(Self.canary) }, "\(names)")
    }

    @Test("A23: no secret is on the screens of top and watch, with the details of a task, nor in their command lines")
    func screens() async throws {
        let server = try server()
        let daemon = try await DaemonProcess.started()
        let ids = try await fail(daemon, server)
        func screen(_ arguments: [String]) throws -> PseudoTerminal {
            try PseudoTerminal(
                [DaemonProcess.program("dlctl"), "--socket", daemon.socket] + arguments, columns: 200, rows: 60)
        }
        let watch = try screen(["watch"] + ids)
        #expect(try await daemon.dlctl(["retry"] + ids).succeeded)
        expectSilent(textOfProcessFile("/proc/\(watch.child.pid)/cmdline"), "the command line of watch")
        #expect(try await watch.child.wait() == .exited(1))
        try await watch.wait(for: "to try again: dlctl retry")
        expectSilent(watch.output, "watch")
        for (search, words) in [("/seg", "jsessionid=REDACTED"), ("/busy", "http-500"), ("/j", "token=REDACTED")] {
            let top = try screen(["top", "--batch", "night", "--search", search])
            try await top.wait(for: "batch night")
            top.type("F")
            try await top.wait(for: "server replied")
            top.type("\r")
            try await top.wait(for: "attempt ")
            try await top.wait(for: words)
            top.type("q")
            top.type("H")
            try await top.wait(for: "1 task")
            expectSilent(textOfProcessFile("/proc/\(top.child.pid)/cmdline"), "the command line of top")
            top.type("q")
            #expect(try await top.child.wait() == .exited(0))
            expectSilent(top.output, "top \(search)")
        }
        expectSilent(textOfProcessFile("/proc/\(try #require(daemon.pid))/cmdline"), "the daemon's command line")
    }

    @Test("A23: a hook's command is given no secret, and what it fails to take is kept without any")
    func hooks() async throws {
        let server = try server()
        let daemon = try await DaemonProcess.started()
        let (seen, inputs) = (place.file("seen"), place.file("inputs"))
        let pid = try #require(daemon.pid)
        let command =
            "cat >>'\(inputs)'; env >>'\(seen)'; cat /proc/self/cmdline /proc/$PPID/cmdline /proc/$PPID/environ "
            + "/proc/\(pid)/cmdline /proc/\(pid)/environ >>'\(seen)'; exit 3"
        let hook = try ChildProcess(
            [
                DaemonProcess.program("dlctl"), "--socket", daemon.socket, "events", "--cursor", "h", "--retries", "0",
                "--jobs", "4", "--on", "failed,retried", "--exec", command,
            ], environment: ["XDG_STATE_HOME": place.path])
        try await eventually(that: "the cursor is stored") { exists(place.file("dld/hooks/h")) }
        let ids = try await fail(daemon, server)
        let letters = place.file("dld/hooks/h.failed")
        try await eventually(that: "each event is given up") {
            (try? text(of: letters))?.split(separator: "\n").count ?? 0 >= ids.count
        }
        #expect(try text(of: seen).contains("DLD_URL=http://127.0.0.1:\(server.port)/seg;jsessionid=REDACTED"))
        #expect(try text(of: inputs).contains("\"event\":{"))
        for name in ["seen", "inputs"] { expectSilent(try text(of: place.file(name)), name) }
        for name in TemporaryDirectory.names(in: place.file("dld/hooks")) {
            expectSilent(try text(of: place.file("dld/hooks/\(name)")), name)
        }
        expectSilent(hook.standardOutput + hook.standardError, "the hook's output")
        expectSilent(daemon.log, "the log")
    }

    @Test("A23: a webhook's receiver is told no secret of a task, and nobody else is told those of the webhook")
    func webhooks() async throws {
        let server = try server()
        let word = Self.canary
        let receiver = try ScriptedServer([
            "/hook?token=\(word)-hook": [
                .redirect("http://u:\(word)-hop@127.0.0.1:1/x?sig=\(word)-hop"), .status(500, body: "\(word)-answer"),
                .status(200),
            ]
        ])
        let host = "127.0.0.1:\(receiver.port)"
        func entry(_ host: String) -> String {
            "  - {url: 'http://w:\(word)-login@\(host)/hook?token=\(word)-hook', on: [added, failed, batch-finished], "
                + "headers: ['X-Hook: \(word)-hook'], secret: \(word)-key}\n"
        }
        // Nothing listens at the second one.
        let daemon = try await DaemonProcess.started(quickRetries + "notify:\n" + entry(host) + entry("127.0.0.1:1"))
        let ids = try await fail(daemon, server)
        let sent = try await eventually(have: "a message of each event") {
            let sent = receiver.requests()
            let bodies = Set(sent.map { String(decoding: $0.body, as: UTF8.self) })
            return bodies.count >= 2 * ids.count + 1 ? sent : nil
        }
        for request in sent {
            expectSilent(String(decoding: request.body, as: UTF8.self), "a message")
            #expect(request.header("x-hook") == "\(word)-hook")
            // The login of the URL arrives encoded.
            #expect(request.header("authorization")?.hasPrefix("Basic ") == true)
            for field in request.headers where field.name != "x-hook" { expectSilent(field.value, field.name) }
        }
        try await eventually(that: "the failure of the second receiver is known") {
            // Of each part of the path at most three characters are shown.
            try await daemon.dlctl("status").output.contains("2. http://127.0.0.1:1/hoo…: fails")
        }
        let commands = [
            ["status"], ["status", "--json"], ["list", "--json"], ["events", "--json"], ["show", "--json"] + ids,
            ["reload"],
        ]
        for command in commands { expectSilent(try await daemon.dlctl(command), "\(command)") }
        expectSilent(daemon.log, "the log")
        let process = try #require(daemon.pid)
        for name in ["cmdline", "environ"] { expectSilent(textOfProcessFile("/proc/\(process)/\(name)"), name) }
    }

    @Test(
        "A23: a refused configuration does not repeat the secrets of a webhook",
        arguments: [
            "url: 'http://w:c4nary@h x/'", "url: 'http://w:c4nary@h:c4nary/'", "url: \"http://w:c4nary@h/\\n\"",
            "url: 'gopher://w:c4nary@h/'", "url: 'http://h/?token=c4nary', headers: ['c4nary']",
            "url: 'http://h/', headers: [\"A: c4nary\\r\\nB: c\"]", "url: 'http://h/', secret: \"c4nary\\n\"",
            "url: 'http://h/', secret: [c4nary]", "url: 'http://w:c4nary@h/', secrets: c4nary",
        ])
    func refusedConfiguration(entry: String) async throws {
        let daemon = try await DaemonProcess.started()
        try daemon.configure("notify:\n  - {\(entry)}\n")
        let checked = try await run([
            DaemonProcess.program("dld"), "--config", daemon.configurationFile, "--check-config",
        ])
        #expect(checked.status == .exited(78) && checked.error.contains(":2:"), "\(checked)")
        expectSilent(checked, "--check-config")
        let reloaded = try await daemon.dlctl("reload")
        #expect(!reloaded.succeeded)
        expectSilent(reloaded, "reload")
        expectSilent(daemon.log, "the log")
    }

    @Test("A23: an app's files and output hold no secret of its downloads")
    func apps() async throws {
        let server = try server()
        let daemon = try await DaemonProcess.started()
        let urls = ["/a?token=c4nary-sig", "/b;jsessionid=c4nary-session", "/c#access_token=c4nary-frag"]
            .map { server.url($0).replacing("http://", with: "http://anna:c4nary-login@") }
        func app(_ arguments: String...) async throws -> Outcome {
            try await run(
                [DaemonProcess.program("BackgroundApp")] + arguments,
                environment: ["XDG_STATE_HOME": place.path, "DLD_SOCKET": daemon.socket])
        }
        let queued = try await app("queue", daemon.downloads, urls[0], urls[1], urls[2])
        // It ends with the error of the first one.
        #expect(queued.error.contains("task 1 is failed") && !queued.succeeded, "\(queued)")
        #expect(try daemon.tasks().count == urls.count)
        expectSilent(queued, "an app that waits")
        for task in try daemon.tasks() { _ = try await daemon.settled(task.id) }
        let collected = try await app("collect")
        #expect(collected.output.contains(" failed download-2 "), "\(collected)")
        expectSilent(collected, "an app that collects")
        let files = TemporaryDirectory.names(beneath: place.path).map(place.file).filter { (size(of: $0) ?? 0) > 0 }
        #expect(!files.isEmpty)
        for file in files { expectSilent((try? text(of: file)) ?? "", file) }
    }

    @Test("A23: completion offers no secret, in the words of any shell", arguments: ["bash", "zsh", "fish"])
    func completion(shell: String) async throws {
        let server = try server()
        let daemon = try await DaemonProcess.started()
        let ids = try await fail(daemon, server)
        let program = try DaemonProcess.program("dlctl")
        /// Returns the words for a place of the command line. A busy daemon may need more than the 40 ms that it has.
        func offers(_ command: String, _ position: String) async throws -> String {
            try await eventually(have: "words for \(command) \(position)") {
                let outcome = try await run(
                    [program, "---completion", command, "--", position, "2", "0", "dlctl", command, ""],
                    environment: ["SAP_SHELL": shell, "DLD_SOCKET": daemon.socket])
                return outcome.output.contains { !$0.isWhitespace } ? outcome.output : nil
            }
        }
        let shown = try await offers("show", "positional@0")
        #expect(shown.contains(try #require(ids.last)) && (shell == "bash" || shown.contains("failed seg")), "\(shown)")
        expectSilent(shown, "show")
        let hosts = try await offers("add", "positional@0")
        #expect(hosts.contains(":\(server.port)/"), "\(hosts)")
        expectSilent(hosts, "add")
        expectSilent(try await offers("add", "--batch"), "--batch")
    }
}
