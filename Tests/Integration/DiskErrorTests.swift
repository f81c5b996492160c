import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Disk faults: failed syncs, writes and closes, once or permanently.
@Suite("Disk errors", .serialized, .timeLimit(.minutes(3)), .needsStrace)
struct DiskErrorTests {
    private static let retries =
        oneConnection + "retry: {attempts: 50, base-delay: 200ms, max-delay: 500ms}\ndisk: {min-free: 0}\n"
    private static let resource = Resource(size: 3 * mebibyte / 2, seed: 3)

    /// Creates a server whose first response takes over a second longer than the following ones.
    private static func makeServer() throws -> ScriptedServer {
        try ScriptedServer([
            "/f": [.drip(resource, after: mebibyte / 2, bytesPerSecond: 700_000), .serve(resource)]
        ])
    }

    /// Waits until the task has begun and returns the path of the only part file.
    private func part(of id: TaskID, _ daemon: DaemonProcess) async throws -> String {
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        return daemon.path(try #require(daemon.partFiles.first))
    }

    private func attach(_ injection: Injection, to daemon: DaemonProcess) async throws -> AttachedInjection {
        try await injection.attach(to: #require(daemon.pid))
    }

    private func hit(_ fault: AttachedInjection) async throws {
        try await eventually(that: "the fault is met", within: .seconds(20)) { fault.count > 0 }
    }

    private func expectComplete(_ id: TaskID, _ daemon: DaemonProcess) async throws {
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(task)")
        #expect(Self.resource.difference(fromFileAt: daemon.path("f")) == nil)
        daemon.expectTidy()
    }

    @Test("F9: after a failed sync only what an earlier one covered counts, and the rest is fetched again")
    func failedCheckpoint() async throws {
        let resource = Resource(size: 12 * mebibyte)
        let server = try ScriptedServer([
            // The second response leaves time to end the fault during the transfer.
            "/f": [.drip(resource, bytesPerSecond: 2 << 20), .drip(resource, bytesPerSecond: 4 << 20)]
        ])
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        let part = try await part(of: id, daemon)
        func stored() async throws -> Int64 {
            let sql = "SELECT bytes_done FROM task"
            let outcome = try await run(["sqlite3", "\(daemon.stateDirectory)/dld.db", sql])
            return outcome.lines.first.flatMap { Int64($0) } ?? 0
        }
        try await eventually(that: "a first checkpoint is written down", within: .seconds(20)) {
            try await stored() > 0
        }
        let fault = try await attach(Injection("fdatasync", .error("EIO"), at: [part]), to: daemon)
        // One more checkpoint may have been written before the fault was injected; none is written while it lasts.
        let covered = try await stored()
        try await hit(fault)
        try await fault.detach()
        let task = try await daemon.settled(id)
        #expect(task.state == .completed)
        #expect(server.requests().count == 2)
        #expect(server.requests().last?.header("range") == "bytes=\(covered)-")
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        daemon.expectTidy()
    }

    @Test("F9: a file whose last sync fails is not complete, and is fetched again")
    func failedLastSync() async throws {
        let server = try Self.makeServer()
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        let fault = try await attach(
            Injection("fdatasync", .error("EIO"), at: [part(of: id, daemon)]), to: daemon)
        try await hit(fault)
        #expect(try daemon.task(id).state != .completed)
        #expect(!exists(daemon.path("f")))
        try await fault.detach()
        try await expectComplete(id, daemon)
        #expect(server.requests().dropFirst().allSatisfy { $0.header("range") == nil })
    }

    @Test("F10: while the log cannot be synced nothing is said yes to; what was said yes to survives")
    func failedLog() async throws {
        let server = try Self.makeServer()
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        _ = try await part(of: id, daemon)
        let log = "\(daemon.stateDirectory)/dld.db-wal"
        let fault = try await attach(Injection("fdatasync,fsync", .error("EIO"), at: [log]), to: daemon)
        for _ in 0..<2 {
            let refused = try await daemon.dlctl("add", "--paused", server.url("/f"))
            #expect(refused.status == .exited(1))
            #expect(refused.error.contains("database"), "\(refused.error)")
        }
        // The end of the transfer cannot be recorded meanwhile, and is not lost.
        try await Task.sleep(for: .milliseconds(1500))
        #expect(daemon.answers)
        try await fault.detach()
        let later = try await daemon.add("--paused", server.url("/f"))
        try await expectComplete(id, daemon)
        #expect(server.requests().count == 1)
        try await daemon.kill()
        try await Invariants(daemon, context: "F10").atRest()
        try await daemon.start()
        #expect(try daemon.tasks().map(\.id) == [id, later])
        #expect(try daemon.task(id).state == .completed)
    }

    @Test("F10: a daemon that is killed while its log cannot be synced still has what it said yes to")
    func failedLogAndKill() async throws {
        let daemon = try await DaemonProcess.started(Self.retries)
        let first = try await daemon.add("--paused", "http://127.0.0.1:1/f")
        let log = "\(daemon.stateDirectory)/dld.db-wal"
        let fault = try await attach(Injection("fdatasync,fsync", .error("EIO"), at: [log]), to: daemon)
        #expect(try await daemon.dlctl("add", "--paused", "http://127.0.0.1:1/g").status == .exited(1))
        try await daemon.kill()
        withExtendedLifetime(fault) {}
        try await Invariants(daemon, context: "F10").atRest()
        try await daemon.start()
        #expect(try daemon.tasks().map(\.id).first == first)
    }

    @Test("F11: while the directory cannot be synced the file is not complete, and then no byte is fetched again")
    func failedDirectory() async throws {
        let server = try Self.makeServer()
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        _ = try await part(of: id, daemon)
        let fault = try await attach(Injection("fsync", .error("EIO"), at: [daemon.downloads]), to: daemon)
        try await eventually(that: "it fails twice", within: .seconds(20)) { fault.count > 1 }
        let task = try daemon.task(id)
        #expect(!task.state.isEnded, "\(task)")
        try await fault.detach()
        try await expectComplete(id, daemon)
        #expect(server.requests().count == 1)
    }

    @Test("F11: a close that fails after a sync that did not costs nothing")
    func failedClose() async throws {
        let server = try Self.makeServer()
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        let part = try await part(of: id, daemon)
        let fault = try await attach(
            Injection("close", .error("EIO"), at: [part, daemon.path("f")]), to: daemon)
        try await expectComplete(id, daemon)
        try await hit(fault)
        try await fault.detach()
        #expect(server.requests().count == 1)
    }

    @Test("F12: a write that fails once costs a retry and no byte of the file")
    func failedWrite() async throws {
        let server = try Self.makeServer()
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        let part = try await part(of: id, daemon)
        let fault = try await attach(Injection("pwrite64", .error("EIO"), occurrence: "1", at: [part]), to: daemon)
        try await hit(fault)
        try await fault.detach()
        try await expectComplete(id, daemon)
    }

    @Test("F12: writes that go on failing park the task, with ever fewer tries; others run, and it goes on")
    func failingWrites() async throws {
        let server = try Self.makeServer()
        let other = try ScriptedServer(["/other": [.serve(Resource(size: 30_000))]])
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add(server.url("/f"))
        let part = try await part(of: id, daemon)
        let fault = try await attach(Injection("pwrite64", .error("EIO"), at: [part]), to: daemon)
        let waiting = try await daemon.state(of: id, "to wait") { $0.state == .waiting }
        #expect(waiting.reason == .disk)
        #expect(waiting.error?.code == .io)
        #expect(waiting.bytesDone > 0)
        #expect(try await daemon.dlctl("add", "--wait", "-o", "other", other.url("/other")).succeeded)
        #expect(server.requests().count < 30)
        try await fault.detach()
        try await expectComplete(id, daemon)
    }

    @Test("F23: a disk that takes 200 ms a write holds up neither other transfers nor the control socket")
    func slowDisk() async throws {
        let slow = Resource(size: 6 * mebibyte, seed: 4)
        let server = try ScriptedServer([
            "/slow": [.serve(slow)], "/quick": [.serve(Self.resource)],
        ])
        let daemon = try await DaemonProcess.started(Self.retries)
        let id = try await daemon.add("--paused", server.url("/slow"))
        let sql = "SELECT value FROM meta WHERE name = 'identity'"
        let identity = try await run(["sqlite3", "\(daemon.stateDirectory)/dld.db", sql]).lines.first ?? ""
        let part = daemon.path(".dld-\(identity)-\(id).part")
        /// Adds quick downloads one after the other, and returns how long the faster half of them took at most.
        func quick(_ names: String, _ count: Int) async throws -> Duration {
            var spans: [Duration] = []
            for number in 0..<count {
                let asked = ContinuousClock.now
                let added = try await daemon.dlctl("add", "--wait", "-o", "\(names)\(number)", server.url("/quick"))
                #expect(added.succeeded)
                spans.append(asked.duration(to: .now))
            }
            return spans.sorted()[(count - 1) / 2]
        }
        // What they take on this machine while a tracer watches the daemon, as below.
        let tracer = try await attach(Injection("pwrite64", .delay(0), at: [part]), to: daemon)
        let usual = try await quick("u", 5)
        try await tracer.detach()
        let fault = try await attach(Injection("pwrite64", .delay(200), at: [part]), to: daemon)
        let begun = ContinuousClock.now
        let resumed = try await daemon.dlctl("resume", "\(id)")
        #expect(resumed.succeeded)
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        // If they waited for the slow disk, each would take seconds.
        let span = try await quick("q", 10)
        #expect(span < max(.milliseconds(1_800), usual * 3), "\(span), \(usual) without the slow disk")
        #expect(try await daemon.settled(id).state == .completed)
        #expect(begun.duration(to: .now) > .seconds(4))
        #expect(slow.difference(fromFileAt: daemon.path("slow")) == nil)
        try await fault.detach()
        daemon.expectTidy()
    }

    @Test("a file that a slow disk has still to publish occupies no connection to its host")
    func slowPublication() async throws {
        let server = try ScriptedServer(["/a": [.serve(Self.resource)], "/b": [.serve(Self.resource)]])
        let daemon = try await DaemonProcess.started(
            quickRetries + "limits: {connections-per-task: 1, connections-per-host: 1}\n")
        let fault = try await attach(Injection("renameat2", .delay(5_000)), to: daemon)
        let first = try await daemon.add(server.url("/a"))
        let second = try await daemon.add(server.url("/b"))
        try await eventually(that: "the second file is requested") { server.requests().count == 2 }
        #expect(try daemon.task(first).state == .active)
        try await fault.detach()
        for id in [first, second] { #expect(try await daemon.settled(id).state == .completed) }
    }
}
