import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Queue files", .serialized, .timeLimit(.minutes(2)))
struct QueueFileTests {
    @Test("a list without tasks or batches says so on standard error")
    func emptyLists() async throws {
        let daemon = try await DaemonProcess.started()
        let lists = [(["list"], "no tasks\n"), (["queue", "list"], "no batches\n")]
        for (arguments, note) in lists {
            let result = try await daemon.dlctl(arguments)
            #expect(result.succeeded)
            #expect((result.output, result.error) == ("", note))
        }
        daemon.expectTidy()
    }

    @Test("pruning more than half of a batch, or by an empty file, needs to be said twice")
    func pruning() async throws {
        let daemon = try await DaemonProcess.started()
        func file(_ count: Int) throws -> String {
            try daemon.directory.write(
                (0..<count).map { "http://127.0.0.1:1/\($0)\n  pause=true\n" }.joined(), to: "b.txt")
        }
        func apply(_ count: Int, _ options: String...) async throws -> Outcome {
            try await daemon.dlctl(["queue", "apply", file(count), "--batch", "b"] + options)
        }
        #expect(try await apply(4).output == "4 added, 0 updated, 0 unchanged, 0 pruned\n")
        let refused = try await apply(1, "--prune")
        #expect(refused.status == .exited(64), "\(refused)")
        #expect(refused.error.contains("--prune: would cancel 3 of the 4 tasks of the batch b; confirm with --yes"))
        #expect(try await apply(1, "--prune", "--dry-run").output.hasSuffix("3 pruned (nothing was changed)\n"))
        #expect(try await apply(2, "--prune").output == "0 added, 0 updated, 2 unchanged, 2 pruned\n")
        #expect(try await apply(0, "--prune", "--yes").status == .exited(64))
        #expect(try await apply(0, "--allow-empty", "--prune").status == .exited(64))
        let emptied = try await apply(0, "--allow-empty", "--prune", "--yes")
        #expect(emptied.output == "0 added, 0 updated, 0 unchanged, 2 pruned\n", "\(emptied)")
    }

    @Test("states stand in the place of ids")
    func states() async throws {
        let daemon = try await DaemonProcess.started("retry: {attempts: 1}\n")
        let ids = ["a", "b"].map { "http://127.0.0.1:1/" + $0 }
        #expect(try await daemon.dlctl(["add", "--batch", "n"] + ids + ["--wait"]).status == .exited(1))
        _ = try await daemon.add("--paused", "http://127.0.0.1:1/c")
        #expect(try await daemon.dlctl("retry", "failed", "--batch", "n").output == "2 tasks retried\n")
        #expect(try await daemon.dlctl("wait", "queued", "active", "waiting").status != .exited(64))
        #expect(try await daemon.dlctl("set", "paused", "--priority", "low").succeeded)
        #expect(try daemon.task(TaskID(3)).priority == .low)
        #expect(try await daemon.dlctl("remove", "failed", "paused").output == "3 tasks removed\n")
        let none = try await daemon.dlctl("wait", "active")
        #expect(none.succeeded && none.error == "nothing to wait for: none of your tasks is active\n", "\(none)")
    }

    @Test("applying a file twice adds nothing the second time, whatever has ended meanwhile")
    func twice() async throws {
        let nginx = try await Nginx([.dav("/dav/")])
        let first = Resource(size: 100_000, seed: 1)
        let second = Resource(size: 200_000, seed: 2)
        let report = Resource(size: 50_000, seed: 3)
        try nginx.publish(first, as: "a.iso")
        try nginx.publish(second, as: "b.iso")
        let daemon = try await DaemonProcess.started()
        try report.write(to: daemon.directory.file("report.tar"))
        let file = try daemon.directory.write(
            """
            batch: nightly
            defaults: {directory: isos, priority: low}
            downloads:
              - url: \(nginx.url("/a.iso"))
                output: first.iso
              - \(nginx.url("/b.iso"))
            uploads:
              - {file: report.tar, url: "\(nginx.url("/dav/report.tar"))", method: PUT}

            """, to: "queue.yaml")
        let applied = try await daemon.dlctl("queue", "apply", file)
        #expect(applied.succeeded, "\(applied.error)")
        let again = try await daemon.dlctl("queue", "apply", file)
        #expect(again.succeeded, "\(again.error)")
        let ids = try daemon.tasks().map(\.id)
        #expect(ids.count == 3)
        for id in ids {
            let task = try await daemon.settled(id)
            #expect(task.state == .completed)
            #expect(task.batch == "nightly")
            #expect(task.priority == .low)
        }
        #expect(try await daemon.dlctl("queue", "apply", file).succeeded)
        #expect(try daemon.tasks().map(\.id) == ids)
        #expect(first.difference(fromFileAt: daemon.path("isos/first.iso")) == nil)
        #expect(second.difference(fromFileAt: daemon.path("isos/b.iso")) == nil)
        #expect(report.difference(fromFileAt: "\(nginx.uploads)/report.tar") == nil)
        #expect(nginx.accesses().count == 3)
        daemon.expectTidy()
    }

    @Test("waiting for a file whose tasks are all known tells of those that failed, and of no others")
    func waitForKnown() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1000, seed: 1))]])
        let daemon = try await DaemonProcess.started()
        let both = try daemon.directory.write("\(server.url("/nothing"))\n\(server.url("/a"))\n", to: "both.txt")
        let one = try daemon.directory.write("\(server.url("/a"))\n", to: "one.txt")
        let first = try await daemon.dlctl("add", "--input", both, "--batch", "b", "--wait")
        #expect(first.status == .exited(1), "\(first)")
        let again = try await daemon.dlctl("add", "--input", both, "--batch", "b", "--wait")
        #expect(again.status == .exited(1), "\(again)")
        #expect(again.output.isEmpty)
        #expect(again.error.contains("http-404"), "\(again)")
        #expect(try await daemon.dlctl("add", "--input", one, "--batch", "b", "--wait").succeeded)
        #expect(try daemon.tasks().count == 2)
    }

    @Test("a misspelt key is refused with its place and the nearest key, and nothing is queued")
    func misspelt() async throws {
        let daemon = try await DaemonProcess.started()
        let file = try daemon.directory.write(
            """
            batch: nightly
            downloads:
              - http://127.0.0.1:1/before
              - url: http://127.0.0.1:1/a
                ouput: a.iso

            """, to: "queue.yaml")
        let outcome = try await daemon.dlctl("queue", "apply", file)
        #expect(outcome.status == .exited(64))
        #expect(outcome.error.contains("queue.yaml:5:5"), "\(outcome.error)")
        #expect(outcome.error.contains("output"), "\(outcome.error)")
        #expect(try daemon.tasks().isEmpty)
    }

    @Test("an entry that cannot be taken refuses the whole file, with its place")
    func rejectedEntry() async throws {
        let daemon = try await DaemonProcess.started()
        let file = try daemon.directory.write(
            """
            batch: nightly
            downloads:
              - http://127.0.0.1:1/before
              - url: file:///etc/passwd

            """, to: "queue.yaml")
        let outcome = try await daemon.dlctl("queue", "apply", file)
        #expect(outcome.status == .exited(64))
        #expect(outcome.error.contains("queue.yaml:4:"), "\(outcome.error)")
        #expect(try daemon.tasks().isEmpty)
    }

    @Test("secrets that an entry names by file reach the server, by queue apply, add --input and dld --queue")
    func secretFiles() async throws {
        let answer = ScriptedAnswer.serve(Resource(size: 1000, seed: 1))
        // A password is sent only to a server that asks for it.
        let challenge = ScriptedAnswer.status(401, headers: ["WWW-Authenticate: Basic realm=\"r\""])
        let server = try ScriptedServer(
            ["/a": [challenge, answer], "/b": [challenge, answer], "/c": [challenge, answer]])
        func entry(_ path: String) -> String {
            """
            downloads:
            - url: \(server.url(path))
              user: anna
              password-file: secrets/pw
              header: ["@secrets/header"]

            """
        }
        let daemon = try await DaemonProcess.started()
        try daemon.directory.makeDirectory("secrets")
        _ = try daemon.directory.write("geheim\n", to: "secrets/pw")
        _ = try daemon.directory.write("X-Token: 17\n", to: "secrets/header")
        let applied = try await daemon.dlctl(
            "queue", "apply", try daemon.directory.write(entry("/a"), to: "a.yaml"))
        #expect(applied.succeeded, "\(applied.error)")
        let added = try await daemon.dlctl(
            "add", "--wait", "--input", try daemon.directory.write(entry("/b"), to: "b.yaml"))
        #expect(added.succeeded, "\(added.error)")
        for id in try daemon.tasks().map(\.id) { #expect(try await daemon.settled(id).state == .completed) }
        let batch = try DaemonProcess(configuration: quickRetries)
        let run = try batch.launch(extra: [
            "--queue", try daemon.directory.write(entry("/c"), to: "c.yaml"), "--exit-when-done",
        ])
        #expect(try await run.wait() == .exited(0), "\(run.standardError)")
        for path in ["/a", "/b", "/c"] {
            let request = try #require(server.requests(for: path).last)
            #expect(request.header("x-token") == "17", "\(path)")
            #expect(request.header("authorization") == "Basic YW5uYTpnZWhlaW0=", "\(path)")
        }
    }

    @Test("a secret's file that is missing refuses the queue file, with its place")
    func missingSecret() async throws {
        let daemon = try await DaemonProcess.started()
        let file = try daemon.directory.write(
            "downloads:\n- {url: http://h/, user: a, password-file: none}\n", to: "queue.yaml")
        let outcome = try await daemon.dlctl("queue", "apply", file)
        #expect(outcome.status == .exited(64))
        #expect(outcome.error.contains("queue.yaml:2:44: \"password-file\": cannot open /"), "\(outcome.error)")
        #expect(outcome.error.contains("/none: No such file or directory"), "\(outcome.error)")
        let batch = try DaemonProcess(configuration: quickRetries)
        let run = try batch.launch(extra: ["--queue", file, "--exit-when-done"])
        #expect(try await run.wait() == .exited(1), "\(run.standardError)")
        #expect(run.standardError.contains("queue.yaml:2:44: \"password-file\": /"), "\(run.standardError)")
    }

    @Test("one fault has one code, by the command line, from a URL list and from a queue file")
    func codes() async throws {
        let daemon = try await DaemonProcess.started()
        let good = "http://127.0.0.1:1/a"
        let list = try daemon.directory.write("\(good)\nfile:///x\n", to: "list.txt")
        let url = try daemon.directory.write("downloads: ['file:///x']\n", to: "url.yaml")
        let climbing = try daemon.directory.write("downloads: [{url: '\(good)', output: ../x}]\n", to: "climbing.yaml")
        let parent = try daemon.directory.write("downloads: [{url: '\(good)', output: ..}]\n", to: "parent.yaml")
        for (arguments, code) in [
            (["add", "file:///x"], "protocol-not-allowed"), (["add", "--input", list], "protocol-not-allowed"),
            (["add", "--input", url], "protocol-not-allowed"), (["queue", "apply", url], "protocol-not-allowed"),
            (["add", good, "-o", "../x"], "path-not-allowed"), (["queue", "apply", climbing], "path-not-allowed"),
            (["add", good, "-o", ".."], "path-not-allowed"), (["queue", "apply", parent], "path-not-allowed"),
            (["add", "--input", parent], "path-not-allowed"),
        ] {
            let outcome = try await daemon.dlctl(arguments + ["--json"])
            #expect(outcome.status == .exited(64), "\(arguments)")
            #expect(outcome.error.contains("\"code\":\"\(code)\""), "\(arguments): \(outcome.error)")
        }
        #expect(try daemon.tasks().isEmpty)
    }

    @Test("with --queue and --exit-when-done the daemon ends with 0 when all completed")
    func batchMode() async throws {
        let server = try ScriptedServer([
            "/a": [.serve(Resource(size: 1000, seed: 1))], "/b": [.serve(Resource(size: 2000, seed: 2))],
        ])
        let daemon = try DaemonProcess(configuration: quickRetries)
        let file = try daemon.directory.write(
            "batch: b\ndownloads: [\"\(server.url("/a"))\", \"\(server.url("/b"))\"]\n", to: "queue.yaml")
        let batch = try daemon.launch(extra: ["--queue", file, "--exit-when-done"])
        #expect(try await batch.wait() == .exited(0), "\(batch.standardError)")
        #expect(Resource(size: 1000, seed: 1).difference(fromFileAt: daemon.path("a")) == nil)
        #expect(Resource(size: 2000, seed: 2).difference(fromFileAt: daemon.path("b")) == nil)
        #expect(daemon.partFiles == [])
    }

    @Test("with --queue and --exit-when-done the daemon ends with 1 when one task failed, and does the others")
    func batchModeFailure() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 1000, seed: 1))]])
        let daemon = try DaemonProcess(configuration: quickRetries)
        let file = try daemon.directory.write(
            "batch: b\ndownloads: [\"\(server.url("/nothing"))\", \"\(server.url("/a"))\"]\n", to: "queue.yaml")
        let batch = try daemon.launch(extra: ["--queue", file, "--exit-when-done"])
        #expect(try await batch.wait() == .exited(1), "\(batch.standardError)")
        #expect(batch.standardError.contains("http-404"), "\(batch.standardError)")
        #expect(Resource(size: 1000, seed: 1).difference(fromFileAt: daemon.path("a")) == nil)
    }

    @Test("a batch of more than a thousand failed tasks is reported whole")
    func largeBatchFailure() async throws {
        let server = try ScriptedServer([:])
        let daemon = try DaemonProcess(configuration: quickRetries)
        let urls = (0..<1_050).map { "\"\(server.url("/nothing\($0)"))\"" }.joined(separator: ", ")
        let file = try daemon.directory.write("batch: b\ndownloads: [\(urls)]\n", to: "queue.yaml")
        let batch = try daemon.launch(extra: ["--queue", file, "--exit-when-done"])
        #expect(try await batch.wait() == .exited(1))
        #expect(batch.standardError.split(separator: "\n").filter { $0.contains("is failed: http-404") }.count == 1_050)
    }

    @Test("a batch that is run again tries again what had failed, and fetches nothing twice")
    func batchModeAgain() async throws {
        let resource = Resource(size: 1000)
        let server = try ScriptedServer(["/a": [.serve(resource)], "/b": [.status(404), .serve(resource)]])
        let daemon = try DaemonProcess(configuration: quickRetries)
        let file = try daemon.directory.write(
            "batch: b\ndownloads: [\"\(server.url("/a"))\", \"\(server.url("/b"))\"]\n", to: "queue.yaml")
        for status in [1, 0, 0] as [Int32] {
            let batch = try daemon.launch(extra: ["--queue", file, "--exit-when-done"])
            #expect(try await batch.wait() == .exited(status), "\(batch.standardError)")
        }
        #expect(server.requests().map(\.path).sorted() == ["/a", "/b", "/b"])
    }

    @Test("a misspelt queue file ends a batch with 1, and says where")
    func batchModeMisspelt() async throws {
        let daemon = try DaemonProcess(configuration: quickRetries + onlyDownloads)
        let file = try daemon.directory.write("downlods: []\n", to: "queue.yaml")
        let batch = try daemon.launch(extra: ["--queue", file, "--exit-when-done"])
        #expect(try await batch.wait() == .exited(1))
        #expect(batch.standardError.contains("\(file):1:1: ") && batch.standardError.contains("downloads"))
        // Errors that only the queue can detect are located in the same way.
        let misplaced = try daemon.directory.write(
            "downloads:\n  - http://h/a\n  - {url: 'http://h/b', directory: /etc}\n", to: "misplaced.yaml")
        let refused = try daemon.launch(extra: ["--queue", misplaced, "--exit-when-done"])
        #expect(try await refused.wait() == .exited(1))
        #expect(refused.standardError.contains("\(misplaced):3:5: \"directory\""), "\(refused.standardError)")
    }
}
