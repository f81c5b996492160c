import ControlProtocol
import Glibc
import TaskModel
import TestSupport
import Testing

/// A real daemon whose settings change while it runs.
@Suite("Rates, reload and queue files of the configuration", .serialized, .timeLimit(.minutes(3)))
struct ReloadTests {
    @Test("dlctl limit holds all tasks back, lets go within a second, and is known after kill -9")
    func limit() async throws {
        let resource = Resource(size: 8 * mebibyte)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        #expect(try await daemon.dlctl("limit", "--download", "1K").output.contains("1.0 KiB/s (set by dlctl limit"))
        let id = try await daemon.add(server.url("/f"))
        try await eventually(that: "it runs") { try daemon.task(id).phase == .transferring }
        try await daemon.kill()
        try await daemon.start()
        #expect(try await daemon.dlctl("limit", "--json").output.contains(#""download":1024"#))
        try await eventually(that: "it runs again") { try daemon.task(id).state == .active }
        #expect(try daemon.task(id).bytesDone < mebibyte)
        _ = try await daemon.dlctl("limit", "--download", "none")
        let begin = ContinuousClock.now
        #expect(try await daemon.settled(id).state == .completed)
        #expect(ContinuousClock.now - begin < .seconds(5))
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(
            try await daemon.dlctl("limit", "--download", "config").output.contains("no limit (from the configuration)")
        )
        daemon.expectTidy()
    }

    @Test("a changed configuration is taken up by SIGHUP and by dlctl reload, and transfers go on undisturbed")
    func reload() async throws {
        let resource = Resource(size: 4 * mebibyte)
        let server = try ScriptedServer(["/f": [.serve(resource)], "/hang": [.hang]])
        let daemon = try await DaemonProcess.started(quickRetries + "limits: {download-rate: 1K}\n")
        let id = try await daemon.add(server.url("/f"))
        try await eventually(that: "it runs") { try daemon.task(id).phase == .transferring }
        try daemon.configure(quickRetries + "limits: {download-rate: 2K}\nlog: {level: debug}\n")
        kill(try #require(daemon.pid), SIGHUP)
        try await eventually(that: "the new rate counts") {
            try await daemon.dlctl("limit", "--json").output.contains(#""download":2048"#)
        }
        // A wrong configuration is refused as a whole.
        try daemon.configure(quickRetries + "limits: {download-rate: 4K, active-tasks: 0}\n")
        let refused = try await daemon.dlctl("reload")
        #expect(refused.status == .exited(1))
        #expect(refused.error.contains(":2:43: \"active-tasks\" must be a whole number from 1"), "\(refused.error)")
        #expect(try await daemon.dlctl("limit", "--json").output.contains(#""download":2048"#))
        #expect(try daemon.task(id).state == .active)
        // New transfers use a new session; running ones stay on the old one.
        try daemon.configure(quickRetries + "limits: {connections-per-host: 2}\ntimeouts: {stall: 20s}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        let task = try await daemon.settled(id)
        #expect((task.state, task.attempts) == (.completed, 1))
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        daemon.expectTidy()
    }

    @Test("queue files that the configuration names are applied at the start and at each reload, a wrong one is named")
    func queueFiles() async throws {
        let server = try ScriptedServer([
            "/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")], "/c": [.status(200, body: "c")],
        ])
        let files = try TemporaryDirectory()
        func write(_ name: String, _ text: String) throws { _ = try files.write(text, to: name) }
        try write("one.x.yaml", "downloads: [\(server.url("/a"))]\n")
        try write("two.yaml", "batch: other\ndownloads: [\(server.url("/b"))]\n")
        let daemon = try await DaemonProcess.started(quickRetries + "queues: [\(files.path)/*.yaml]\n")
        try await eventually(that: "both are done") {
            try daemon.tasks().filter { $0.state == .completed }.compactMap(\.batch).sorted() == ["one.x", "other"]
        }
        try write("two.yaml", "batch: other\ndownloads: [\(server.url("/b")), \(server.url("/c"))]\n")
        try write("three.yaml", "downloads:\n  - ulr: x\n")
        let reloaded = try await daemon.dlctl("reload")
        #expect(
            reloaded.succeeded && reloaded.error.contains("three.yaml:2:5: \"ulr\" is not a key"), "\(reloaded.error)")
        try await eventually(that: "the third is done") { try daemon.tasks().count { $0.state == .completed } == 3 }
        let batches: QueueListResult = try daemon.call(.queueList, NoParameters())
        #expect(batches.batches.map(\.outcome) == [.completed, .completed])
        #expect(batches.batches.map(\.bytesDone) == [1, 2])
        daemon.expectTidy()
    }

    @Test("a pipe in the place of a file holds up neither a reload nor the daemon's end", .timeLimit(.minutes(1)))
    func pipes() async throws {
        let files = try TemporaryDirectory()
        let daemon = try await DaemonProcess.started(quickRetries + "queues: [\(files.path)/*.yaml]\n")
        #expect(mkfifo(files.file("f.yaml"), 0o600) == 0)
        let reloaded = try await daemon.dlctl("reload")
        #expect(reloaded.succeeded && reloaded.error.contains("f.yaml: is a pipe"), "\(reloaded.error)")
        #expect(unlink(daemon.configurationFile) == 0 && mkfifo(daemon.configurationFile, 0o600) == 0)
        let refused = try await daemon.dlctl("reload")
        #expect(refused.status == .exited(1) && refused.error.contains("is a pipe"), "\(refused.error)")
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("a window of the schedule in which nothing runs is told by list, and what it holds goes on without it")
    func window() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "x")]])
        let daemon = try await DaemonProcess.started(quickRetries + "schedule: [{pause: true}]\n")
        let id = try await daemon.add(server.url("/f"))
        let task = try daemon.task(id)
        #expect((task.state, task.reason, task.notBefore) == (.queued, .scheduled, nil))
        #expect(try await daemon.dlctl("list").output.contains("paused by the schedule"))
        try daemon.configure(quickRetries)
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(server.requests().count == 1)
        daemon.expectTidy()
    }
}
