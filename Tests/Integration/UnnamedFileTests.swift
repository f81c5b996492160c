import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Faults at the moment in which a file that was written without a name gets one.
@Suite("Small files without a name", .serialized, .timeLimit(.minutes(2)), .needsStrace)
struct UnnamedFileTests {
    private static let resource = Resource(size: 5_000, seed: 3)
    private static let configuration = """
        retry: {attempts: 20, base-delay: 50ms, max-delay: 200ms}
        disk: {min-free: 0}
        limits: {active-tasks: 32, connections-per-host: 32}

        """
    /// The number of other transfers, which is enough for small files to be without a name.
    private static let others = 8

    private static func server() throws -> ScriptedServer {
        var routes: [String: [ScriptedAnswer]] = ["/f": [.serve(resource)]]
        for number in 0..<others { routes["/held-\(number)"] = [.hang] }
        return try ScriptedServer(routes)
    }

    /// Returns a daemon with transfers that are held up.
    private func startDaemon(_ server: ScriptedServer) async throws -> DaemonProcess {
        let daemon = try await DaemonProcess.started(Self.configuration)
        for number in 0..<Self.others { _ = try await daemon.add(server.url("/held-\(number)")) }
        try await eventually(that: "the others are under way") { server.requests().count == Self.others }
        return daemon
    }

    private func attach(_ injection: Injection, to daemon: DaemonProcess) async throws -> AttachedInjection {
        try await injection.attach(to: #require(daemon.pid))
    }

    private func expectComplete(_ id: TaskID, _ daemon: DaemonProcess, named name: String = "f") async throws {
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(task)")
        #expect(Self.resource.difference(fromFileAt: daemon.path(name)) == nil)
        daemon.expectTidy()
    }

    @Test("a kernel that links no file by its descriptor alone links it by the descriptor's path")
    func descriptorPath() async throws {
        let server = try Self.server()
        let daemon = try await startDaemon(server)
        let fault = try await attach(Injection("linkat", .error("ENOENT"), occurrence: "1"), to: daemon)
        let id = try await daemon.add(server.url("/f"))
        try await expectComplete(id, daemon)
        try await fault.detach()
        #expect(fault.count == 1 && fault.log.contains("/proc/self/fd/"))
        #expect(server.requests().count == Self.others + 1)
    }

    @Test(
        "a file that cannot get its name is downloaded again, and nothing is left of it",
        arguments: ["EIO", "ENOSPC", "EDQUOT", "EMLINK", "EPERM"])
    func refused(error: String) async throws {
        let server = try Self.server()
        let daemon = try await startDaemon(server)
        let fault = try await attach(Injection("linkat", .error(error), occurrence: "1"), to: daemon)
        let id = try await daemon.add(server.url("/f"))
        try await eventually(that: "the fault is met", within: .seconds(20)) { fault.count == 1 }
        try await fault.detach()
        try await eventually(that: "the task completes", within: .seconds(20)) {
            // Ends the wait for room.
            _ = try await daemon.dlctl(["resume", "\(id)"])
            return try daemon.task(id).state == .completed
        }
        try await expectComplete(id, daemon)
    }

    @Test(
        "a pause, a cancellation or a removal while the name is given leaves a whole file or none",
        arguments: [
            "pause", "cancel", "remove",
        ])
    func interrupted(command: String) async throws {
        let server = try Self.server()
        let daemon = try await startDaemon(server)
        let fault = try await attach(Injection("linkat", .delay(1_500), occurrence: "1"), to: daemon)
        let id = try await daemon.add(server.url("/f"))
        try await eventually(that: "the name is being given") { try daemon.task(id).phase == .publishing }
        _ = try await daemon.dlctl([command, "\(id)"])
        try await fault.detach()
        #expect(fault.log.contains("linkat("))
        if exists(daemon.path("f")) { #expect(Self.resource.difference(fromFileAt: daemon.path("f")) == nil) }
        daemon.expectTidy()
        guard command != "remove" else { return }
        _ = try await daemon.dlctl([command == "pause" ? "resume" : "retry", "\(id)"])
        try await expectComplete(id, daemon)
        #expect(!exists(daemon.path("f (1)")))
    }

    @Test(
        "a kill before the name is given costs one more request, one between the name and the record none",
        arguments: ["linkat", "syncfs"])
    func killed(call: String) async throws {
        let server = try Self.server()
        let daemon = try await startDaemon(server)
        let fault = try await attach(Injection(call, .kill, occurrence: "1"), to: daemon)
        let id = try await daemon.add(server.url("/f"))
        try await eventually(that: "the daemon is dead", within: .seconds(20)) { !daemon.isRunning }
        #expect(exists(daemon.path("f")) == (call == "syncfs"))
        #expect(fault.log.contains("\(call)("))
        try await daemon.start()
        try await expectComplete(id, daemon)
        #expect(!exists(daemon.path("f (1)")))
        #expect(server.requests(for: "/f").count == (call == "syncfs" ? 1 : 2))
    }

    @Test("a file whose name is taken at the last moment gets a number")
    func taken() async throws {
        let server = try Self.server()
        let daemon = try await startDaemon(server)
        let fault = try await attach(Injection("linkat", .delay(1_500), occurrence: "1"), to: daemon)
        let id = try await daemon.add(server.url("/f"))
        try await eventually(that: "the name is being given") { try daemon.task(id).phase == .publishing }
        try Data("mine".utf8).write(to: URL(filePath: daemon.path("f")))
        try await expectComplete(id, daemon, named: "f (1)")
        try await fault.detach()
        #expect(fault.log.contains("linkat("))
        #expect(try text(of: daemon.path("f")) == "mine")
    }

    @Test("an error of the file system's sync, which may concern another file, does not fail a file whose own is good")
    func failedSync() async throws {
        let server = try Self.server()
        let daemon = try await startDaemon(server)
        let fault = try await attach(Injection("syncfs", .error("EIO"), occurrence: "1"), to: daemon)
        let id = try await daemon.add(server.url("/f"))
        try await expectComplete(id, daemon)
        try await fault.detach()
        #expect(fault.count == 1)
        #expect(server.requests().count == Self.others + 1)
    }
}
