import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Secrets that must appear nowhere except at the server that they are for.
@Suite("Secrets that are looked for everywhere", .serialized, .timeLimit(.minutes(3)))
struct CanaryTests {
    /// The prefix of every secret.
    private static let canary = "c4nary"

    private func processText(_ pid: pid_t) -> String {
        ["cmdline", "environ"].map { textOfProcessFile("/proc/\(pid)/\($0)") }.joined()
    }

    /// Writes a queue file that uses every option that can carry a secret, each read from a file: a command line is
    /// visible to every user.
    private func queue(
        _ server: ScriptedServer, behind proxy: HTTPProxy, _ name: String, in directory: TemporaryDirectory
    ) throws -> String {
        let word = Self.canary
        let host = "127.0.0.1:\(server.port)"
        try directory.write("\(word)-password\n", to: "password")
        try directory.write("X-Api-Key: \(word)-header\nAuthorization: Bearer \(word)-bearer\n", to: "header")
        try directory.write("127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t\(word)-cookie\n", to: "jar")
        try directory.write("content", to: "source")
        return try directory.write(
            """
            downloads:
            - {url: 'http://\(host)/\(name)?sig=\(word)-signature', output: \(name)1, header: ['@header']}
            - {url: 'http://\(host)/\(name)', output: \(name)2, user: anna, password-file: password}
            - {url: 'http://anna:\(word)-login@\(host)/\(name)', output: \(name)3, cookies: jar}
            - {url: 'http://\(host)/\(name)', output: \(name)4, proxy: 'http://p:\(word)-proxy@127.0.0.1:\(proxy.port)'}
            uploads:
            - {file: source, url: 'http://\(host)/\(name)-in', form: {token: \(word)-field}}

            """, to: "\(name).yaml")
    }

    private func expectSilence(_ daemon: DaemonProcess, _ ids: [TaskID]) async throws {
        let all = ids.map(\.description)
        var calls = [["list"], ["list", "--json"], ["show"] + all, ["show", "--json"] + all, ["queue", "list"]]
        calls += [["events", "--after", "0"], ["events", "--json", "--after", "0"], ["status", "--json"]]
        calls +=
            all.map { ["rpc", "task.get", "{\"id\":\($0)}"] } + all.map { ["wait", $0] } + [["rpc", "task.list"]]
        for arguments in calls {
            let outcome = try await daemon.dlctl(arguments)
            #expect(!(outcome.output + outcome.error).contains(Self.canary), "\(arguments) \(outcome)")
        }
        #expect(!daemon.log.contains(Self.canary))
        #expect(!processText(try #require(daemon.pid)).contains(Self.canary))
    }

    /// Returns the files of the state directory that contain a secret.
    private func holders(_ daemon: DaemonProcess) async throws -> [String] {
        try await run(["grep", "-rla", Self.canary, daemon.stateDirectory]).lines
    }

    private func run(
        _ name: String, _ daemon: DaemonProcess, _ server: ScriptedServer, behind proxy: HTTPProxy
    ) async throws -> [TaskID] {
        let before = try daemon.tasks().map(\.id)
        let file = try queue(server, behind: proxy, name, in: daemon.directory)
        let client = try ChildProcess(
            [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "add", "--wait", "--input", file])
        var looks = 0
        while client.poll() == nil {
            #expect(!processText(client.pid).contains(Self.canary))
            looks += 1
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(looks > 0 && !(client.standardOutput + client.standardError).contains(Self.canary))
        let ids = try daemon.tasks().map(\.id).filter { !before.contains($0) }
        #expect(ids.count == 5, "\(client.standardError)")
        for id in ids { _ = try await daemon.settled(id) }
        return ids
    }

    private func run(_ arguments: [String]) async throws -> Outcome { try await TestSupport.run(arguments) }

    @Test(
        "A23: no secret is told by a list, an event, the log, an error or a process, and none is left once all is done")
    func nowhere() async throws {
        let resource = Resource(size: 1_000)
        let proxied = "/good"
        let server = try ScriptedServer([
            "/good?sig=c4nary-signature": [.serve(resource)], proxied: [.serve(resource)],
            "/good-in": [.status(201)],
            "/bad?sig=c4nary-signature": [.status(404, body: "c4nary-answer")],
            "/bad": [.status(403, body: "c4nary-answer")], "/bad-in": [.status(500, body: "c4nary-answer")],
        ])
        let daemon = try await DaemonProcess.started()
        // The proxy lets nobody through without the password.
        let proxy = try await HTTPProxy(user: "p", password: "\(Self.canary)-proxy")
        let good = try await run("good", daemon, server, behind: proxy)
        let states = try good.map { try daemon.task($0).state }
        #expect(states.allSatisfy { $0 == .completed }, "\(states)")
        try await expectSilence(daemon, good)
        let bad = try await run("bad", daemon, server, behind: proxy)
        for id in bad { #expect(try daemon.task(id).state != .completed) }
        try await expectSilence(daemon, bad)
        let copies = try TemporaryDirectory()
        let copied = try await daemon.dlctl("backup", copies.file("before"))
        #expect(copied.succeeded && !(copied.output + copied.error).contains(Self.canary), "\(copied)")
        // A copy must be able to retry what failed.
        #expect(try await run(["grep", "-rla", Self.canary, copies.path]).lines == [copies.file("before")])
        let sent = server.requests()
        let fields = sent.flatMap { request in request.headers.map(\.value) }
        for word in ["c4nary-header", "Bearer c4nary-bearer", "a=c4nary-cookie"] {
            #expect(fields.contains(word), "\(word) was sent")
        }
        #expect(sent.contains { String(decoding: $0.body, as: UTF8.self).contains("c4nary-field") })
        // A failed task may be retried; a removed or completed task no longer needs its secrets.
        #expect(try await daemon.dlctl("remove", "--all", "--state", "failed", "--yes").succeeded)
        #expect(try await daemon.dlctl("remove", "--all", "--state", "paused", "--yes").succeeded)
        try await eventually(that: "nothing holds a secret", within: .seconds(60), every: .milliseconds(200)) {
            try await holders(daemon).isEmpty
        }
        let later = try TemporaryDirectory()
        #expect(try await daemon.dlctl("backup", "--json", later.file("after")).succeeded)
        #expect(try await run(["grep", "-rla", Self.canary, later.path]).lines == [])
        #expect(try await daemon.terminate() == .exited(0))
        #expect(try await holders(daemon) == [])
    }

    @Test(
        "A23: no secret is in a field of the journal",
        .enabled(if: geteuid() == 0, "only root can stand in for the journal"))
    func journal() async throws {
        let server = try ScriptedServer([
            "/a?sig=c4nary-signature": [.serve(Resource(size: 1_000))], "/a": [.status(403, body: "c4nary-answer")],
            "/a-in": [.status(500, body: "c4nary-answer")],
        ])
        let journal = try JournalSubstitute()
        let daemon = try DaemonProcess(
            configuration: quickRetries, prefix: journal.prefix, environment: journal.environment)
        try await daemon.start()
        let proxy = try await HTTPProxy(user: "p", password: "\(Self.canary)-proxy")
        let ids = try await run("a", daemon, server, behind: proxy)
        #expect(try await daemon.terminate() == .exited(0))
        for id in ids {
            let story = try journal.story(of: id.rawValue)
            #expect(story.contains { $0["URL"]?.first?.hasPrefix("http://127.0.0.1:") == true }, "\(story)")
        }
        #expect(!"\(try journal.entries())".contains(Self.canary))
    }

    @Test("the secrets of a command line are hidden while dlctl runs, and reach the server")
    func commandLine() async throws {
        let word = Self.canary
        let path = "/a?sig=\(word)-signature"
        let server = try ScriptedServer([path: [.drip(Resource(size: 3_000), bytesPerSecond: 1_000)]])
        let daemon = try await DaemonProcess.started()
        let client = try ChildProcess([
            DaemonProcess.program("dlctl"), "--socket", daemon.socket, "add", "--wait", "--header", "X-A: \(word)-one",
            "--header=X-B: \(word)-two", "--referer", "http://\(word)-login@h/", server.url(path),
        ])
        try await eventually(that: "the task runs") { try daemon.tasks().contains { $0.state == .active } }
        let shown = textOfProcessFile("/proc/\(client.pid)/cmdline")
        #expect(!shown.contains(word) && shown.contains("--header=*") && shown.contains("/a?*"), "\(shown)")
        #expect(try await client.wait() == .exited(0))
        #expect(!(client.standardOutput + client.standardError).contains(word))
        let sent = server.requests()
        #expect(sent.contains { $0.header("x-a") == "\(word)-one" && $0.header("x-b") == "\(word)-two" })
    }
}
