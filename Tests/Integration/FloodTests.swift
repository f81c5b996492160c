import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Servers that send useless bytes for as long as the client reads.
@Suite("Floods", .serialized, .timeLimit(.minutes(3)))
struct FloodTests {
    private func daemon() async throws -> DaemonProcess {
        let authority = try await TestCertificates.shared.authority.path
        return try await DaemonProcess.started(
            """
            retry: {attempts: 2, base-delay: 50ms, max-delay: 100ms}
            tls: {ca-file: \(authority)}
            timeouts: {stall: 2s, connect: 5s}
            hosts: {localhost: {http-version: 2}}

            """)
    }

    private func number(_ field: String, of daemon: DaemonProcess) throws -> Int {
        let status = textOfProcessFile("/proc/\(try #require(daemon.pid))/status")
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(field) })
        return try #require(line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) })
    }

    /// Returns the processor time used, in hundredths of a second.
    private func ticks(_ daemon: DaemonProcess) throws -> Int {
        let fields = textOfProcessFile("/proc/\(try #require(daemon.pid))/stat").split(separator: " ")
        return try #require(Int(fields[13])) + #require(Int(fields[14]))
    }

    private func expectUnharmed(_ daemon: DaemonProcess, since before: Int) async throws {
        let grown = try number("VmHWM:", of: daemon) - before
        #expect(grown < 64 << 10, "\(grown) KiB")
        // A flood that still kept the processor busy would use at least half of this time.
        let used = try ticks(daemon)
        try await Task.sleep(for: .seconds(1))
        #expect(try ticks(daemon) - used < 40)
        daemon.expectTidy()
    }

    @Test("A15, A20, F51: no flood of HTTP/2 frames takes memory or the processor, and each attempt ends by itself")
    func frames() async throws {
        // libcurl 7.88.1 takes the end of a connection after an oversized frame for the end of a body without a length:
        // see F51 in docs/failures.md.
        let kinds = FloodServer.Kind.allCases.filter {
            ![.refusedTunnel, .chunkedTunnel, .banner, .packets, .tickets, .hugeFrame, .extensions].contains($0)
        }
        let server = try await FloodServer(kinds, identity: TestCertificates.shared.server)
        let daemon = try await daemon()
        let before = try number("VmHWM:", of: daemon)
        let quiet: Set<FloodServer.Kind> = [
            .emptyData, .padding, .priority, .unknown, .trailers, .window, .goAway, .resets,
        ]
        // First the kinds that libcurl ends by itself, concurrently; then some of those that it reads without end.
        let first = kinds.filter { !quiet.contains($0) }
        let others: [FloodServer.Kind] = Torture.isLong ? Array(quiet) : [.emptyData, .padding, .priority, .unknown]
        for some in [first, others] {
            var ids: [(FloodServer.Kind, TaskID)] = []
            for kind in some {
                let url = "https://localhost:\(server.port(kind))/"
                ids.append((kind, try await daemon.add("-o", kind.rawValue, url)))
            }
            for (kind, id) in ids {
                let task = try await daemon.settled(id, within: .seconds(60))
                #expect([.completed, .failed].contains(task.state), "\(kind): \(task)")
                if task.state == .completed {
                    #expect(try text(of: daemon.path(kind.rawValue)) == "abc", "\(kind)")
                } else {
                    #expect([.connect, .stalled, .tooLarge].contains(task.error?.code), "\(kind): \(task)")
                }
            }
        }
        #expect(try await daemon.dlctl("remove", "--all", "--yes").succeeded)
        try await expectUnharmed(daemon, since: before)
    }

    @Test("A15, A19: peers that flood every loop at once are cut off, others go on, and cancelling is heard")
    func others() async throws {
        let kinds: [FloodServer.Kind] = [.refusedTunnel, .chunkedTunnel, .banner, .emptyData]
        let server = try await FloodServer(kinds, identity: TestCertificates.shared.server)
        let resource = Resource(size: 3 * mebibyte)
        let honest = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 1_500_000)]])
        let daemon = try await daemon()
        let before = try number("VmHWM:", of: daemon)
        let good = try await daemon.add(honest.url("/f"))
        var ids: [TaskID] = []
        for kind in [FloodServer.Kind.refusedTunnel, .chunkedTunnel] {
            let proxy = "http://127.0.0.1:\(server.port(kind))"
            ids.append(try await daemon.add("--proxy", proxy, "-o", kind.rawValue, "https://localhost:1/"))
        }
        ids.append(try await daemon.add("sftp://anna@127.0.0.1:\(server.port(.banner))/f"))
        let cancelled = try await daemon.add("-o", "empty", "https://localhost:\(server.port(.emptyData))/")
        try await daemon.state(of: cancelled, "to begin") { $0.state == .active }
        #expect(try await daemon.dlctl("cancel", cancelled.description).succeeded)
        #expect(try daemon.task(cancelled).state == .cancelled)
        #expect(try await daemon.settled(good).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        for id in ids {
            let task = try await daemon.settled(id)
            #expect([.failed, .paused].contains(task.state), "\(task)")
        }
        #expect(try await daemon.dlctl("remove", "--all", "--yes").succeeded)
        try await expectUnharmed(daemon, since: before)
    }

    /// Expects that an attempt of a task ended as a flood. The last one may have ended before it received anything.
    private func expectFlood(_ id: TaskID, _ daemon: DaemonProcess) async throws {
        let shown = try await daemon.dlctl("show", id.description, "--json")
        #expect(shown.output.contains("floods the connection"), "\(shown)")
    }

    @Test("A42: long chunk extensions end an attempt within two seconds of processor time")
    func extensions() async throws {
        let server = try await FloodServer([.extensions], identity: TestCertificates.shared.server)
        let daemon = try await daemon()
        let (before, used) = (try number("VmHWM:", of: daemon), try ticks(daemon))
        let url = "http://127.0.0.1:\(server.port(.extensions))/"
        let task = try await daemon.settled(try await daemon.add("-o", "f", url), within: .seconds(60))
        #expect(task.state == .failed, "\(task)")
        try await expectFlood(task.id, daemon)
        // Two attempts.
        #expect(try ticks(daemon) - used < 400)
        #expect(try await daemon.dlctl("remove", "--all", "--yes").succeeded)
        try await expectUnharmed(daemon, since: before)
    }

    @Test("A20: SSH packets that nobody asked for, and endless session tickets, take neither memory nor time")
    func unasked() async throws {
        let server = try await FloodServer([.packets, .tickets], identity: TestCertificates.shared.server)
        let daemon = try await daemon()
        let before = try number("VmHWM:", of: daemon)
        let ids = [
            try await daemon.add("sftp://anna@127.0.0.1:\(server.port(.packets))/f"),
            // The other address of localhost, if any, refuses the connection first.
            try await daemon.add("-o", "g", "sftp://anna@localhost:\(server.port(.packets))/g"),
            try await daemon.add("-o", "tickets", "https://localhost:\(server.port(.tickets))/"),
        ]
        for id in ids {
            let task = try await daemon.settled(id, within: .seconds(60))
            #expect(task.state == .failed, "\(task)")
            try await expectFlood(id, daemon)
        }
        #expect(try await daemon.dlctl("remove", "--all", "--yes").succeeded)
        try await expectUnharmed(daemon, since: before)
    }
}
