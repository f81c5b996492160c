import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Tests of `dlctl set` on real daemons, with its main use, URLs that expire, and of the protocols of file servers.
@Suite("Changed tasks and other protocols", .serialized, .timeLimit(.minutes(5)))
struct SetTests {
    private static func connections(_ count: String) -> String {
        quickRetries + "limits: {connections-per-task: \(count)}\n"
    }

    @Test(
        "F53: a signed URL that expires keeps the bytes and says what to do; with a fresh one the file is completed",
        arguments: ["1", "auto"])
    func expired(connections: String) async throws {
        let resource = Resource(size: 40 * mebibyte)
        let server = try ScriptedServer([
            "/file?signature=first-secret": [.serveThenCut(resource, after: 20 * mebibyte), .status(403)],
            "/file?signature=other-secret": [.serve(resource)],
        ])
        let daemon = try await DaemonProcess.started(Self.connections(connections))
        let id = try await daemon.add(server.url("/file?signature=first-secret"))
        let expired = try await daemon.settled(id)
        #expect((expired.state, expired.reason) == (.paused, .urlExpired))
        #expect(expired.error?.code == .http(403) && expired.error?.httpStatus == 403)
        #expect(expired.bytesDone >= 10 * mebibyte && daemon.partFiles.count == 1)

        let advice = "dlctl set \(id) --url NEW"
        let waited = try await daemon.dlctl("wait", id.description)
        #expect(waited.status == .exited(1) && waited.error.contains(advice), "\(waited.error)")
        #expect(try await daemon.dlctl("show", id.description).output.contains(advice))
        #expect(try await daemon.dlctl("list").error.contains(advice))
        // The state persists over a crash.
        try await daemon.kill()
        try await daemon.start()
        #expect(try daemon.task(id).reason == .urlExpired)

        let set = try await daemon.dlctl("set", id.description, "--url", server.url("/file?signature=other-secret"))
        #expect(set.succeeded, "\(set.error)")
        #expect(try await daemon.dlctl("wait", id.description).succeeded)
        let task = try daemon.task(id)
        #expect(task.url == server.url("/file?signature=REDACTED") && task.error == nil)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        #expect(task.bytesFetched < resource.size / 4 * 5)
        #expect(server.bodyBytesSent(for: "/file?signature=other-secret") < resource.size / 4 * 3)
        #expect(!daemon.log.contains("first-secret") && !daemon.log.contains("other-secret"))
        daemon.expectTidy()
    }

    @Test("what a task can be added with, it can be changed to, and back")
    func everything() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 3_000))]])
        let daemon = try await DaemonProcess.started()
        let task = try await daemon.add("--paused", server.url("/a"))
        let id = task.description
        let first = try await daemon.add("--paused", server.url("/b")).description
        try daemon.directory.write(
            "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tcookie-secret\n", to: "cookies")
        try daemon.directory.write("machine 127.0.0.1 login me password p\n", to: "netrc")
        let changes = [
            ["--max-size", "1K"], ["--on-conflict", "fail"], ["--name-from", "url"], ["--user-agent", "agent/1"],
            ["--referer", "http://r/"], ["--connect-timeout", "5s"], ["--stall-timeout", "1h30m"],
            ["--checksum-url", "http://127.0.0.1:1/SUMS"], ["--cookies", "cookies"], ["--netrc", "netrc"],
            ["--proxy", "http://127.0.0.1:1"], ["--after-task", first], ["--batch", "nightly"],
        ]
        for change in changes {
            let changed = try await daemon.dlctl(["set", id] + change)
            #expect(changed.succeeded, "\(change) \(changed)")
        }
        let shown = try await daemon.dlctl("show", id)
        #expect(shown.output.contains("nightly") && !shown.output.contains("cookie-secret"), "\(shown)")
        for wrong in [["--after-task", "99"], ["--max-size", "many"], ["--after-task", id], ["--on-conflict", "x"]] {
            let refused = try await daemon.dlctl(["set", id] + wrong)
            #expect(!refused.succeeded && !refused.error.isEmpty, "\(wrong) \(refused)")
        }
        #expect(try await daemon.dlctl("pause", id, "--batch", "nightly").status == .exited(64))
        for change in changes where change[0] != "--max-size" {
            #expect(try await daemon.dlctl("set", id, change[0], "none").succeeded, "\(change)")
        }
        #expect(try await daemon.dlctl("resume", id).succeeded)
        #expect(try await daemon.settled(task).error?.code == .tooLarge)
        let raised = try await daemon.dlctl("set", id, "--max-size", "none")
        #expect(raised.succeeded, "\(raised)")
        #expect(try await daemon.dlctl("retry", id).succeeded)
        let done = try await daemon.settled(task)
        #expect(done.state == .completed && done.batch == nil, "\(done)")
        let request = try #require(server.requests(for: "/a").last)
        #expect(request.header("user-agent")?.hasPrefix("dld/") == true && request.header("cookie") == nil)
    }

    @Test(
        "F53: what lies at the fresh URL is another file, and none of the old one's bytes get into it",
        arguments: [("\"1\"", "\"2\""), (nil, nil), ("\"1\"", "\"1\""), (nil, "\"2\"")] as [(String?, String?)],
        ["1", "auto"])
    func anotherFile(tags: (old: String?, new: String?), connections: String) async throws {
        var (old, new) = (Resource(size: 24 * mebibyte, seed: 1), Resource(size: 24 * mebibyte, seed: 2))
        // An entity tag distinguishes versions of one resource, and means nothing across two (RFC 9110, section 8.8.3).
        (old.entityTag, new.entityTag) = tags
        let server = try ScriptedServer([
            "/old": [.serveThenCut(old, after: 12 * mebibyte), .status(403)], "/new": [.serve(new)],
        ])
        let daemon = try await DaemonProcess.started(Self.connections(connections))
        let id = try await daemon.add("-o", "file", server.url("/old"))
        #expect(try await daemon.settled(id).reason == .urlExpired)
        #expect(try await daemon.dlctl("set", id.description, "--url", server.url("/new")).succeeded)
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(new.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("a change is durable when dlctl returns, a task that runs goes on with it, and its bytes stay")
    func durable() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(8 * mebibyte))])
        let resource = Resource(size: 40 * mebibyte)
        try nginx.publish(resource, as: "file")
        let daemon = try await DaemonProcess.started(Self.connections("1"))
        let id = try await daemon.add(nginx.url("/slow/file"))
        try await daemon.state(of: id, "to reach 12 MiB") { $0.bytesDone >= 12 * mebibyte }
        let set = try await daemon.dlctl(
            "set", id.description, "--output", "other", "--header", "X-New: 1", "--limit", "1G", "--priority", "high")
        #expect(set.succeeded, "\(set.error)")
        try await daemon.kill()
        try await daemon.start()
        let after = try daemon.task(id)
        #expect(after.name == "other" && after.priority == .high && after.bytesDone >= 12 * mebibyte)
        let task = try await daemon.settled(id)
        #expect(task.state == .completed && task.attempts <= 1 && task.path == daemon.path("other"))
        #expect(task.bytesFetched < resource.size / 4 * 5)
        #expect(resource.difference(fromFileAt: daemon.path("other")) == nil)
        #expect(!exists(daemon.path("file")))
        daemon.expectTidy()
    }

    @Test("a limit that is set while the task runs slows it down, and taking it back lets it go")
    func limit() async throws {
        let resource = Resource(size: 24 * mebibyte)
        let server = try ScriptedServer([
            "/file": [.drip(resource, bytesPerSecond: Int(8 * mebibyte)), .serve(resource)]
        ])
        let daemon = try await DaemonProcess.started(Self.connections("1"))
        let id = try await daemon.add(server.url("/file"))
        try await daemon.state(of: id, "to reach 1 MiB") { $0.bytesDone >= mebibyte }
        #expect(try await daemon.dlctl("set", id.description, "--limit", "1M").succeeded)
        let (before, begun) = (try daemon.task(id), ContinuousClock.now)
        try await Task.sleep(for: .seconds(2))
        let fetched = try daemon.task(id).bytesFetched - before.bytesFetched
        let seconds = Double((ContinuousClock.now - begun).components.seconds + 1)
        // Without the limit the server would have sent everything at once.
        #expect(fetched > 0 && Double(fetched) < (seconds + 1) * Double(mebibyte), "\(fetched) in \(seconds) s")
        #expect(try await daemon.dlctl("set", id.description, "--limit", "none").succeeded)
        #expect(try await daemon.settled(id, within: .seconds(10)).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("set --json prints the task as show does, and the exit codes are those of the contract")
    func exitCodes() async throws {
        let server = try ScriptedServer(["/file": [.status(200, body: "text")]])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add("--paused", "--limit", "2M", server.url("/file")).description
        let set = try await daemon.dlctl("set", id, "--output", "renamed", "--connections", "3", "--json")
        let shown = try await daemon.dlctl("show", id, "--json")
        #expect(set.succeeded && set.output == shown.output && set.output.contains("renamed"), "\(set) \(shown)")
        let scheduled = try await daemon.dlctl("set", id, "--start-at", "+2h", "--limit", "none", "--header", "none")
        #expect(scheduled.succeeded && scheduled.output.contains("paused"), "\(scheduled.output)")

        let cases: [(arguments: [String], status: Int32, words: String)] = [
            (["99", "--limit", "1M"], 1, "no task has the id 99"),
            ([id], 64, "give at least one change"),
            ([id, "--limit", "fast"], 64, "--limit"),
            ([id, "--output", "a/b"], 64, "--output"),
            ([id, "--url", "nowhere"], 64, "nowhere: has no scheme"),
            ([id, "--url", "gopher://h/a"], 64, "ftp, ftps or sftp"),
            ([id, "--header", "nothing"], 64, "--header"),
            ([id, "--header", "Range: bytes=0-1"], 64, "--header"),
            ([id, "--connections", "99"], 64, "--connections"),
        ]
        for one in cases {
            let outcome = try await daemon.dlctl(["set"] + one.arguments)
            #expect(outcome.status == .exited(one.status), "\(one.arguments)")
            #expect(outcome.error.contains(one.words), "\(one.arguments): \(outcome.error)")
        }
        let unknown = try await daemon.dlctl("rpc", "task.update", #"{"id":1,"changes":{"checksum":"md5:0"}}"#)
        #expect(unknown.status == .exited(64) && unknown.error.contains("changes.checksum"), "\(unknown.error)")

        #expect(try await daemon.dlctl("resume", "--now", id).succeeded)
        #expect(try await daemon.settled(TaskID(1)).state == .completed)
        #expect(exists(daemon.path("renamed")))
        let completed = try await daemon.dlctl("set", id, "--output", "again")
        #expect(completed.status == .exited(1) && completed.error.contains("is completed"), "\(completed.error)")
        try await daemon.terminate()
        #expect(try await daemon.dlctl("set", id, "--output", "again").status == .exited(69))
    }

    @Test("a queue file's limit is taken, and its change updates the task")
    func queueFile() async throws {
        let daemon = try await DaemonProcess.started()
        func apply(_ limit: String) async throws -> String {
            let text = "batch: b\ndownloads: [{url: http://127.0.0.1:9/a, paused: true, limit: \(limit)}]\n"
            let file = try daemon.directory.write(text, to: "queue.yaml")
            let outcome = try await daemon.dlctl("queue", "apply", file, "--json")
            #expect(outcome.succeeded, "\(outcome.error)")
            return outcome.output
        }
        #expect(try await apply("1M").contains(#""added":1"#))
        #expect(try await apply("1024K").contains(#""unchanged":1"#))
        #expect(try await apply("2M").contains(#""updated":1"#))
    }

    // MARK: - File servers

    /// Downloads at the server's rate, with a SIGKILL in the middle.
    private func surviveKill(
        _ daemon: DaemonProcess, _ id: TaskID, _ resource: Resource, freeze: () -> Void = {}, thaw: () -> Void = {}
    ) async throws {
        // A download is never 64 MiB ahead of its last commit: of 100 MiB, 36 are known to be committed.
        try await daemon.state(of: id, "to reach 100 MiB") { $0.bytesDone >= 100 * mebibyte }
        freeze()
        try await daemon.kill()
        thaw()
        #expect(!exists(daemon.path("large.img")))
        try await daemon.start()
        #expect(try daemon.task(id).bytesDone >= 36 * mebibyte)
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(task.bytesFetched >= resource.size && task.bytesFetched < resource.size / 4 * 5)
        #expect(resource.difference(fromFileAt: daemon.path("large.img")) == nil)
        daemon.expectTidy()
    }

    @Test("a download by FTP goes on after SIGKILL where it stood, and ends byte-exact")
    func ftp() async throws {
        let server = try await Vsftpd(bytesPerSecond: Int(64 * mebibyte))
        let resource = Resource(size: 256 * mebibyte)
        try server.publish(resource, as: "large.img")
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/large.img"))
        try await surviveKill(daemon, id, resource)
        let offsets = server.commands.filter { $0.hasPrefix("REST ") }.compactMap { Int64($0.dropFirst(5)) }
        #expect(offsets.contains { $0 >= 36 * mebibyte }, "\(server.commands)")
    }

    @Test("a download by FTPS trusts the authority that it was given, and no server without one")
    func ftps() async throws {
        let certificates = try await TestCertificates.shared
        let server = try await Vsftpd(security: .implicit(certificates.server))
        let resource = Resource(size: 3 * mebibyte)
        try server.publish(resource, as: "file")
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl(
            "add", "--wait", "--cacert", certificates.authority.path, server.url("/file", host: "localhost"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        let untrusted = try await daemon.dlctl("add", "--wait", server.url("/file", host: "localhost"))
        #expect(untrusted.status == .exited(1) && untrusted.error.contains("tls"), "\(untrusted.error)")
    }

    @Test("a file of an FTP server is held against the list of digests beside it")
    func listOfDigests() async throws {
        let server = try await Vsftpd()
        let resource = Resource(size: 3 * mebibyte)
        try server.publish(resource, as: "file")
        let sums = try await run(["sh", "-c", "cd \"$0\" && sha256sum file > SHA256SUMS", server.root])
        #expect(sums.succeeded, "\(sums.error)")
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl(
            "add", "--wait", "--checksum-url", server.url("/SHA256SUMS"), server.url("/file"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(try daemon.task(TaskID(1)).verified)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test(
        "a download by SFTP with a password goes on after SIGKILL, and a host that is not known is not spoken to",
        .enabled(if: isRoot, "an account for a password, and a home for the daemon, can be shown by root alone"))
    func sftp() async throws {
        let server = try await SFTPServer(login: ("tester", "open sesame"))
        let resource = Resource(size: 256 * mebibyte)
        try server.publish(resource, as: "large.img")
        #expect(chmod("\(server.root)/large.img", 0o644) == 0)
        let place = try TemporaryDirectory()
        let password = try place.write("open sesame\n", to: "password")
        let login = ["--user", server.user, "--password-file", password]

        // The known keys are those in the home directory of the daemon's user, as the account database states it.
        func daemon(knowing keys: [SFTPServer.KeyPair]) async throws -> DaemonProcess {
            let accounts = try text(of: "/etc/passwd").split(separator: "\n").map { line in
                var fields = line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
                if fields.count == 7, fields[0] == "root" { fields[5] = (try? server.makeHome(knowing: keys)) ?? "/" }
                return fields.joined(separator: ":") + "\n"
            }
            let file = try place.write(accounts.joined(), to: "passwd-\(keys.count)")
            return try await DaemonProcess.started(
                quickRetries,
                prefix: [
                    "unshare", "--mount", "sh", "-c", "mount --bind \(file) /etc/passwd && exec \"$@\"", "sh",
                ])
        }
        let trusting = try await daemon(knowing: server.hostKeys.filter { $0.type == .ed25519 })
        let added = try await trusting.dlctl(["add"] + login + [server.url("/large.img")])
        #expect(added.succeeded, "\(added.error)")
        let id = TaskID(try #require(added.lines.first.flatMap { Int64($0) }))
        try await surviveKill(trusting, id, resource, freeze: server.freeze, thaw: server.thaw)

        let wary = try await daemon(knowing: [])
        let outcome = try await wary.dlctl(["add", "--wait"] + login + [server.url("/large.img")])
        #expect(outcome.status == .exited(1), "\(outcome.error)")
        let refused = try wary.task(TaskID(1))
        #expect(refused.state == .failed && refused.error?.code == .tls && refused.bytesFetched == 0)
        #expect(!exists(wary.path("large.img")))
        // A transfer without a login fails: the user is asked for one.
        let anonymous = try await trusting.dlctl("add", "--wait", server.url("/large.img"))
        #expect(anonymous.status == .exited(1) && anonymous.error.contains("password"), "\(anonymous.error)")
        #expect(try trusting.task(TaskID(2)).reason == .auth)
        #expect(!trusting.log.contains("open sesame") && !anonymous.error.contains("open sesame"))
    }
}
