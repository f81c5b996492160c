import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Failures that end in the state and error code of the contract, and disturb no other task.
@Suite("Failures", .serialized, .timeLimit(.minutes(3)))
struct FailureTests {
    /// Fails the test unless a new task completes while another one fails.
    private func expectOthersRun(_ daemon: DaemonProcess) async throws {
        let resource = Resource(size: 30_000, seed: 99)
        let server = try ScriptedServer(["/other": [.serve(resource)]])
        let outcome = try await daemon.dlctl("add", "--wait", "-o", "other", server.url("/other"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: daemon.path("other")) == nil)
        #expect(daemon.isRunning)
    }

    @Test("a server that is down leaves the task waiting for its next attempt, and resume means now")
    func downThenUp() async throws {
        let daemon = try await DaemonProcess.started("retry: {attempts: 10, base-delay: 10m, max-delay: 10m}\n")
        let port = try FreePort.next()
        let id = try await daemon.add("http://127.0.0.1:\(port)/file")
        let waiting = try await daemon.state(of: id, "to wait") { $0.state == .waiting }
        #expect(waiting.reason == .retry)
        #expect(waiting.error?.code == .connect)
        #expect(waiting.notBefore != nil)
        try await expectOthersRun(daemon)
        let resource = Resource(size: 10_000)
        let server = try ScriptedServer(port: port, ["/file": [.serve(resource)]])
        defer { server.stop() }
        // A change of the network, which a test beside this one may cause, has the task tried again too.
        let resumed = try await daemon.dlctl("resume", id.description)
        #expect(resumed.succeeded || resumed.error.contains("completed"), "\(resumed.error)")
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("a server that stays down fails the task with connect once the attempts are used up")
    func down() async throws {
        let daemon = try await DaemonProcess.started()
        let url = "http://127.0.0.1:\(try FreePort.next())/file"
        let outcome = try await daemon.dlctl("add", "--wait", url)
        #expect(outcome.status == .exited(1))
        #expect(outcome.error.contains("connect"), "\(outcome.error)")
        let task = try #require(try daemon.tasks().first)
        #expect(task.state == .failed)
        #expect(task.error?.code == .connect)
        #expect(task.attempts == 3)
        try await expectOthersRun(daemon)
        daemon.expectTidy()
    }

    @Test("a task's own --max-attempts takes the place of the configured number, also within a run")
    func ownAttempts() async throws {
        let resource = Resource(size: 2 * mebibyte)
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: mebibyte, headers: ["Accept-Ranges: none"])]
        ])
        let daemon = try await DaemonProcess.started()
        let patient = try await daemon.add("--max-attempts", "5", "http://127.0.0.1:9/a")
        #expect(try await daemon.settled(patient).attempts == 5)
        let single = try await daemon.add("--max-attempts", "1", server.url("/f"))
        let task = try await daemon.settled(single)
        #expect((task.state, task.attempts) == (.failed, 1) && server.requests().count == 1)
        #expect(try await daemon.dlctl("set", "\(patient)", "--max-attempts", "none").succeeded)
        #expect(try await daemon.dlctl("retry", "\(patient)").succeeded)
        try await eventually(that: "it failed again") { try daemon.task(patient).attempts == 5 + 3 }
        for wrong in ["0", "1000001", "x", "-1"] {
            let refused = try await daemon.dlctl("add", "--max-attempts=\(wrong)", server.url("/f"))
            #expect(refused.status == .exited(64) && refused.error.contains("--max-attempts"), "\(refused.error)")
        }
    }

    @Test("a 404 fails at once, after one request")
    func notFound() async throws {
        let server = try ScriptedServer(["/gone": [.status(404, body: "not here")]])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("add", "--wait", server.url("/gone"))
        #expect(outcome.status == .exited(1))
        let task = try #require(try daemon.tasks().first)
        #expect(task.state == .failed)
        #expect(task.error?.code == .http(404))
        #expect(task.error?.httpStatus == 404)
        try await expectOthersRun(daemon)
        #expect(server.requests(for: "/gone").count == 1)
        #expect(!exists(daemon.path("gone")))
        daemon.expectTidy()
    }

    @Test("a 500 is tried again, and success follows")
    func serverError() async throws {
        let resource = Resource(size: 40_000)
        let server = try ScriptedServer([
            "/file": [.status(500, body: "<html>an error page</html>"), .serve(resource)]
        ])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/file"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(server.requests(for: "/file").count == 2)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("a 500 that stays fails the task with http-500")
    func persistentServerError() async throws {
        let server = try ScriptedServer(["/file": [.status(500)]])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/file"))
        let task = try await daemon.settled(id)
        #expect(task.state == .failed)
        #expect(task.error?.code == .http(500))
        #expect(server.requests(for: "/file").count == 3)
        daemon.expectTidy()
    }

    @Test("F35: a name that does not exist fails with dns")
    func unresolvable() async throws {
        let place = try TemporaryDirectory()
        let daemon = try await DaemonProcess.started(quickRetries, prefix: hostsFileAlone(in: place))
        let id = try await daemon.add("http://no-such-name.invalid/file")
        let task = try await daemon.settled(id)
        #expect(task.state == .failed)
        #expect(task.error?.code == .dns)
        try await expectOthersRun(daemon)
        daemon.expectTidy()
    }

    @Test("a connection cut in the middle goes on where it stood", arguments: [false, true])
    func cut(reset: Bool) async throws {
        let resource = Resource(size: 40 * mebibyte)
        let server = try ScriptedServer([
            "/file": [
                .serveThenCut(resource, after: 15 * mebibyte, reset ? .reset : .close),
                .serveThenCut(resource, after: 10 * mebibyte, reset ? .reset : .close), .serve(resource),
            ]
        ])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/file"))
        let task = try await daemon.settled(id)
        #expect(task.state == .completed)
        #expect(task.bytesFetched >= resource.size)
        #expect(task.bytesFetched < resource.size / 4 * 5)
        #expect(server.bodyBytesSent(for: "/file") < resource.size / 4 * 5)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }

    @Test("a body shorter than its Content-Length is never called complete")
    func truncated() async throws {
        let resource = Resource(size: 50_000)
        let server = try ScriptedServer(["/file": [.claim(resource, length: 60_000)]])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/file"))
        // Receiving the same 50,000 bytes again is no progress that would reset the number of attempts.
        let task = try await daemon.settled(id, within: .seconds(15))
        #expect(task.state == .failed)
        #expect(!exists(daemon.path("file")))
        #expect(daemon.isRunning)
    }

    @Test("a retry that is due before the failure is recorded in full is not forgotten")
    func immediateRetries() async throws {
        let paths = (0..<12).map { "/\($0)" }
        let failures = Array(repeating: ScriptedAnswer.status(503), count: 40)
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: paths.map { ($0, failures + [.serve(Resource(size: 10))]) }))
        let daemon = try await DaemonProcess.started("retry: {attempts: 60, base-delay: 1ms, max-delay: 2ms}\n")
        // Writes for other tasks lie between the record of a failure and the end of its run.
        for path in paths { _ = try await daemon.add(server.url(path)) }
        try await eventually(that: "all tasks complete", within: .seconds(45)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
    }

    @Test(
        "a full disk leaves the task waiting while another place takes its files, and it goes on when there is room",
        .enabled(if: isRoot, "a tmpfs can be mounted by root alone"), arguments: [true, false])
    func diskFull(lengthIsKnown: Bool) async throws {
        let resource = Resource(size: 32 * mebibyte)
        let server = try ScriptedServer(["/file": [lengthIsKnown ? .serve(resource) : .chunked(resource)]])
        let daemon = try await DaemonProcess.started(quickRetries + "disk: {min-free: 0}\n")
        let small = try daemon.directory.makeDirectory("downloads/small")
        let disk = try await Mount.tmpfs(at: small, bytes: (lengthIsKnown ? 40 : 8) * mebibyte)
        // The file would fit without the ballast: a task whose file can never fit does not wait.
        if lengthIsKnown { try Resource(size: 32 * mebibyte).write(to: "\(small)/ballast") }
        let id = try await daemon.add("--directory", "small", server.url("/file"))
        let waiting = try await daemon.state(of: id, "to wait") { $0.state == .waiting && $0.reason == .diskFull }
        #expect(waiting.error?.code == .diskFull)
        #expect(!exists("\(small)/file"))
        try await expectOthersRun(daemon)
        #expect(try daemon.task(id).state != .failed)
        // The task checks again by itself, at most max-delay later.
        try await disk.resize(bytes: 96 * mebibyte)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: "\(small)/file") == nil)
        daemon.expectTidy()
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("a host that never answers, with 200 tasks, does not hold back a task on another port")
    func hangingHost() async throws {
        let hanging = try ScriptedServer(["/hang": [.hang]])
        defer { hanging.stop() }
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer(["/file": [.serve(resource)]])
        let daemon = try await DaemonProcess.started("")
        let urls = (0..<200).map { _ in hanging.url("/hang") }
        #expect(try await daemon.dlctl(["add"] + urls).succeeded)
        try await eventually(that: "the host is taken up") { hanging.connectionsAccepted > 0 }
        // Once no further task starts, the remaining slots are those left to other hosts.
        try await Task.sleep(for: .seconds(1))
        let id = try await daemon.add(server.url("/file"))
        let task = try await daemon.settled(id, within: .seconds(15))
        #expect(task.state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        #expect(try daemon.tasks().count == 201)
        #expect(daemon.isRunning)
    }
}
