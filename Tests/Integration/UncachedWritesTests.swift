import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Fast downloads, whose blocks another thread writes without the page cache.
@Suite("Writes without the page cache", .serialized, .timeLimit(.minutes(3)), .needsStrace)
struct UncachedWritesTests {
    private static let resource = Resource(size: 96 * mebibyte + 12_345, seed: 12)
    private static let configuration =
        oneConnection + "retry: {attempts: 50, base-delay: 100ms, max-delay: 200ms}\ndisk: {min-free: 0}\n"

    /// A running download whose writes take 20 ms longer, so that each test has two seconds for what it does.
    private struct Running {
        var nginx: Nginx
        var daemon: DaemonProcess
        var id: TaskID
        var part: String
        var delay: AttachedInjection
    }

    private func begun(_ options: String...) async throws -> Running {
        let nginx = try await Nginx()
        try nginx.publish(Self.resource, as: "f")
        let daemon = try await DaemonProcess.started(Self.configuration)
        let added = try await daemon.dlctl(["add", "--paused"] + options + [nginx.url("/f")])
        let id = TaskID(try #require(added.lines.first.flatMap { Int64($0) }, "\(added)"))
        let sql = "SELECT value FROM meta WHERE name = 'identity'"
        let identity = try await run(["sqlite3", "\(daemon.stateDirectory)/dld.db", sql]).lines.first ?? ""
        let part = daemon.path(".dld-\(identity)-\(id).part")
        let delay = try await Injection("pwrite64", .delay(20), at: [part]).attach(to: #require(daemon.pid))
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        try await daemon.state(of: id, "to be under way") { $0.bytesDone > 8 * mebibyte }
        return Running(nginx: nginx, daemon: daemon, id: id, part: part, delay: delay)
    }

    private func expectComplete(_ running: Running) async throws {
        let task = try await running.daemon.settled(running.id)
        #expect(task.state == .completed, "\(task)")
        #expect(Self.resource.difference(fromFileAt: running.daemon.path("f")) == nil)
        running.daemon.expectTidy()
    }

    /// The number of the daemon's descriptors with O_DIRECT.
    private func uncachedDescriptors(of daemon: DaemonProcess) throws -> Int {
        let pid = try #require(daemon.pid)
        return TemporaryDirectory.names(beneath: "/proc/\(pid)/fdinfo").count { number in
            let flags = ((try? String(contentsOfFile: "/proc/\(pid)/fdinfo/\(number)", encoding: .utf8)) ?? "").split(
                separator: "\n"
            )
            .first { $0.hasPrefix("flags:") }
            let octal = flags.flatMap { Int($0.dropFirst(6).drop { $0 == "\t" || $0 == " " }, radix: 8) } ?? 0
            return octal & 0o40_000 != 0
        }
    }

    @Test("a fast download has them on ext4 and XFS, and one with a checksum has not")
    func fast() async throws {
        let running = try await begun()
        let count = try uncachedDescriptors(of: running.daemon)
        let type = try await run(["stat", "-f", "-c", "%T", running.daemon.path("")]).lines.first ?? ""
        #expect(count == (["ext2/ext3", "xfs"].contains(type) ? 1 : 0), "\(type)")
        try await running.delay.detach()
        try await expectComplete(running)
        let left = try uncachedDescriptors(of: running.daemon)
        #expect(left == 0)
        let summed = try await begun("--checksum", "sha-256:\(checksum(of: Self.resource))")
        let none = try uncachedDescriptors(of: summed.daemon)
        #expect(none == 0)
        try await summed.delay.detach()
        try await expectComplete(summed)
    }

    @Test("a download that is paused and resumed at once goes on where it was")
    func pauses() async throws {
        let running = try await begun()
        for _ in 0..<5 {
            // Beside other tests a pause may come too late.
            let paused = try await running.daemon.dlctl("pause", "\(running.id)")
            if try running.daemon.task(running.id).state == .completed { break }
            #expect(paused.succeeded, "\(paused)")
            #expect(try await running.daemon.dlctl("resume", "\(running.id)").succeeded)
            let before = try running.daemon.task(running.id).bytesDone
            try await running.daemon.state(of: running.id, "to go on") {
                $0.state == .completed || $0.bytesDone > before
            }
        }
        try await running.delay.detach()
        try await expectComplete(running)
        let task = try running.daemon.task(running.id)
        #expect(task.bytesFetched < Self.resource.size + 24 * mebibyte, "\(task)")
        #expect(task.attempts <= 6, "\(task)")
    }

    @Test("a download that becomes slow and fast again goes on without them and with them, and fetches nothing twice")
    func slower() async throws {
        let running = try await begun()
        for rate in ["2M", "none", "3M", "none"] {
            #expect(try await running.daemon.dlctl("limit", "--download", rate).succeeded)
            let before = try running.daemon.task(running.id).bytesDone
            try await running.daemon.state(of: running.id, "to go on") {
                $0.state == .completed || $0.bytesDone > before + 3 * mebibyte
            }
        }
        try await running.delay.detach()
        try await expectComplete(running)
        let task = try running.daemon.task(running.id)
        #expect(task.bytesFetched == Self.resource.size && task.attempts <= 1, "\(task)")
    }

    @Test("a block that cannot be written costs a retry and no byte of the file")
    func failedBlock() async throws {
        let running = try await begun()
        try await running.delay.detach()
        let fault = try await Injection("pwrite64", .error("EIO"), occurrence: "1", at: [running.part])
            .attach(to: #require(running.daemon.pid))
        try await eventually(that: "the fault is met", within: .seconds(20)) { fault.count > 0 }
        try await fault.detach()
        try await expectComplete(running)
    }

    @Test(
        "what another process does to the part does not reach the file",
        arguments: [MeddlingTests.Meddling.modified, .deleted, .replaced])
    func meddling(_ meddling: MeddlingTests.Meddling) async throws {
        let running = try await begun()
        try meddling.apply(to: running.part)
        try await running.delay.detach()
        try await expectComplete(running)
    }

    @Test("after kill -9 the file is complete and right, and what was checkpointed is not fetched again")
    func killed() async throws {
        let running = try await begun()
        try await running.daemon.state(of: running.id, "to be checkpointed") { $0.bytesDone > 40 * mebibyte }
        try await running.daemon.kill()
        try await running.daemon.start()
        try await expectComplete(running)
    }
}
