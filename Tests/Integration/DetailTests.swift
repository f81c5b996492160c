import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// `dlctl show` and `task.get` against running daemons: the history of attempts, and the state of the transfer.
@Suite("The history of a task and its transfer", .serialized, .timeLimit(.minutes(3)))
struct DetailTests {
    private func detail(_ id: TaskID, _ daemon: DaemonProcess) throws -> TaskDetail {
        try daemon.call(.taskGet, TaskGetParameters(id: id))
    }

    @Test("failures, a restart between them and the success stay in the history; kill -9 loses the attempt it ended")
    func restart() async throws {
        let body = Resource(size: 3 * mebibyte)
        let server = try ScriptedServer([
            "/a?token=of-the-link": [
                .status(503), .status(500), .drip(body, after: mebibyte, bytesPerSecond: 1_000), .serve(body),
            ]
        ])
        let daemon = try await DaemonProcess.started(
            "retry: {attempts: 9, base-delay: 50ms, max-delay: 100ms}\n" + oneConnection)
        let id = try await daemon.add(server.url("/a?token=of-the-link"))
        try await daemon.state(of: id, "to receive bytes") { $0.bytesDone >= mebibyte / 2 }
        let running = try detail(id, daemon)
        #expect(running.history.map(\.status).prefix(2) == [503, 500] && running.history.count == 3)
        #expect(running.history.last?.endedAt == nil && running.live?.connections.count == 1)
        try await daemon.kill()
        try await daemon.start()
        let done = try await daemon.settled(id)
        #expect(done.state == .completed)
        let history = try detail(id, daemon).history
        #expect(history.map { $0.error?.code } == [.http(503), .http(500), nil])
        #expect(history.allSatisfy { $0.endedAt != nil && $0.address == "127.0.0.1:\(server.port)" })
        #expect(history.map(\.startedAt) == history.map(\.startedAt).sorted())

        let shown = try await daemon.dlctl("show", "\(id)")
        #expect(shown.succeeded && shown.output.contains("http-503") && shown.output.contains("completed"))
        let json = try await daemon.dlctl("show", "\(id)", "--json")
        let whole = try JSONDecoder().decode(TaskDetail.self, from: Data(json.output.utf8))
        #expect(try whole == detail(id, daemon))
        #expect(!json.output.contains("of-the-link") && !shown.output.contains("of-the-link"))
    }

    @Test("an orderly end of the daemon keeps the attempt that it ends")
    func orderlyEnd() async throws {
        let body = Resource(size: 3 * mebibyte)
        let server = try ScriptedServer([
            "/a": [.drip(body, after: mebibyte, bytesPerSecond: 1_000), .serve(body)]
        ])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        let id = try await daemon.add(server.url("/a"))
        try await daemon.state(of: id, "to receive bytes") { $0.bytesDone >= mebibyte / 2 }
        #expect(try await daemon.terminate() == .exited(0))
        try await daemon.start()
        #expect(try await daemon.settled(id).state == .completed)
        let history = try detail(id, daemon).history
        #expect(history.count == 2 && history.allSatisfy { $0.error == nil && $0.endedAt != nil })
        #expect(history.map(\.status) == [200, 206] && history[0].bytes >= mebibyte)
    }

    @Test("of 25 attempts the last 20 are kept")
    func many() async throws {
        let server = try ScriptedServer([
            "/a": Array(repeating: .status(503), count: 24) + [.serve(Resource(size: 10))]
        ])
        let daemon = try await DaemonProcess.started("retry: {attempts: 30, base-delay: 1ms, max-delay: 5ms}\n")
        let id = try await daemon.add(server.url("/a"))
        #expect(try await daemon.settled(id).state == .completed)
        let history = try detail(id, daemon).history
        #expect(history.count == 20 && history.prefix(19).allSatisfy { $0.status == 503 })
        #expect(history.last?.status == 200)
        #expect(server.requests().count == 25)
    }

    @Test("several connections are shown with their parts, which cover what is there")
    func connections() async throws {
        let resource = Resource(size: 40 * mebibyte)
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 1_000_000)])
        try nginx.publish(resource, as: "f")
        let daemon = try await DaemonProcess.started("limits: {download-rate: 100M}\n")
        let id = try await daemon.add("--connections", "4", "--limit", "50M", nginx.url("/slow/f"))
        let detail = try await eventually(have: "four connections that receive bytes") {
            let detail = try self.detail(id, daemon)
            let connections = detail.live?.connections ?? []
            return connections.count == 4 && connections.allSatisfy { $0.next > $0.first } ? detail : nil
        }
        let live = try #require(detail.live)
        for connection in live.connections {
            #expect(connection.address == "127.0.0.1:\(nginx.port)")
            let end = try #require(connection.end)
            #expect(connection.next <= end && end <= resource.size)
        }
        #expect(Set(live.connections.map(\.first)).count == 4)
        for (one, other) in zip(live.segments, live.segments.dropFirst()) { #expect(one.end < other.first) }
        let present = live.segments.reduce(0) { $0 + $1.end - $1.first }
        #expect(present > 0 && present <= detail.status.bytesDone + 4 * mebibyte)
        #expect(
            live.rateLimits == [
                LiveRateLimit(scope: .task, rate: 50 << 20), LiveRateLimit(scope: .daemon, rate: 100 << 20),
            ])
        let shown = try await daemon.dlctl("show", "\(id)")
        #expect(shown.output.contains("  map ") && shown.output.contains("50.0 MiB/s (task)"))
        #expect(shown.output.contains("  connection"))
    }

    @Test("an upload shows its connection", arguments: ["http"])
    func upload(kind: String) async throws {
        let nginx = try await Nginx([.dav("/up/")])
        let daemon = try await DaemonProcess.started("limits: {upload-rate: 200K}\n")
        let source = try daemon.directory.write(String(repeating: "x", count: 2 << 20), to: "source")
        let id = try await daemon.upload(source, nginx.url("/up/a"))
        try await daemon.state(of: id, "to send bytes") { $0.bytesDone > 0 }
        let live = try #require(try detail(id, daemon).live)
        #expect(live.connections.first?.address == "127.0.0.1:\(nginx.port)")
        let shown = try await daemon.dlctl("show", "\(id)").output
        let map = try #require(shown.split(separator: "\n").first { $0.contains("  map ") })
        #expect(map.contains { "#+▒█".contains($0) }, "\(shown)")
        #expect(shown.contains(" sent"), "\(shown)")
        #expect(live.segments.isEmpty && live.rateLimits == [LiveRateLimit(scope: .daemon, rate: 200 << 10)])
    }

    @Test("another user sees neither the task nor its history", .enabled(if: isRoot))
    func owners() async throws {
        let server = try ScriptedServer(["/a": [.serve(Resource(size: 10))]])
        let daemon = try DaemonProcess(configuration: "control: {mode: 0666}\n", mode: 0o755)
        try await daemon.start()
        let id = try await daemon.add(server.url("/a"))
        #expect(try await daemon.settled(id).state == .completed)
        let client = try DaemonProcess.program("dlctl")
        let other = ["setpriv", "--reuid", "64101", "--regid", "64101", "--clear-groups"]
        let shown = try await run(
            other + [client, "--socket", daemon.socket, "show", "\(id)", "--json"], within: .seconds(60))
        #expect(!shown.succeeded && !shown.output.contains("127.0.0.1") && !shown.output.contains("history"))
    }
}
