import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// A running daemon whose database files are moved away.
@Suite("A lost database", .serialized, .timeLimit(.minutes(3)))
struct LostDatabaseTests {
    private static let resource = Resource(size: 4 * mebibyte, seed: 9)

    @Test(
        "F66: no id is given out into a file without a name; killed or ended, the daemon goes on with all that it had",
        arguments: ["dld.db", "dld.db-wal"], [true, false])
    func lost(name: String, isKilled: Bool) async throws {
        let server = try ScriptedServer([
            "/f": [.drip(Self.resource, after: mebibyte, bytesPerSecond: 100_000), .serve(Self.resource)]
        ])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        let running = try await daemon.add(server.url("/f"))
        let paused = try await daemon.add("--paused", "http://127.0.0.1:9/p")
        try await eventually(that: "a checkpoint is written down") {
            let sql = "SELECT bytes_done > \(mebibyte) FROM task WHERE id = \(running)"
            return try await run(["sqlite3", "-readonly", "\(daemon.stateDirectory)/dld.db", sql]).lines == ["1"]
        }

        #expect(unlink("\(daemon.stateDirectory)/\(name)") == 0)
        let refused = try await daemon.dlctl("add", "--json", "http://127.0.0.1:9/lost")
        #expect(refused.status == .exited(1))
        #expect((refused.output + refused.error).contains("\"database-lost\""), "\(refused)")
        #expect((refused.output + refused.error).contains("restart the daemon, and it uses that copy"), "\(refused)")
        for command in [["pause"], ["cancel"], ["remove"], ["set", "--url", server.url("/g")]] {
            #expect(try await daemon.dlctl(command + [running.description]).succeeded == false, "\(command)")
        }
        #expect(daemon.partFiles.count == 1)
        let before = try daemon.task(running).bytesFetched
        try await daemon.state(of: running, "to go on all the same") { $0.bytesFetched > before }
        #expect(try await daemon.dlctl("status").output.contains("/\(name) was removed"))
        #expect(daemon.log.contains("critical"), "\(daemon.log.suffix(2000))")
        let copies = TemporaryDirectory.names(beneath: daemon.stateDirectory).filter { $0.contains("rescued") }
        #expect(copies.count == 1)
        #expect(try daemon.tasks().map(\.id) == [running, paused])

        if isKilled { try await daemon.kill() } else { try await daemon.terminate() }
        try await daemon.start()
        #expect(try daemon.tasks().map(\.id) == [running, paused])
        #expect(try await daemon.add("--paused", "http://127.0.0.1:9/n").rawValue == paused.rawValue + 1)
        #expect(try await daemon.settled(running).state == .completed)
        #expect(Self.resource.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(server.requests(for: "/f").last?.header("range") != nil, "its bytes were kept")
        daemon.expectTidy()
    }

    @Test("a daemon that finds a log without its database touches nothing and says what to do")
    func logAlone() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--paused", "http://127.0.0.1:9/p")
        try await daemon.kill()
        #expect(unlink("\(daemon.stateDirectory)/dld.db") == 0)
        let log = size(of: "\(daemon.stateDirectory)/dld.db-wal")
        let child = try daemon.launch()
        #expect(try await child.wait(within: .seconds(20)) == .exited(65))
        #expect(child.standardError.contains("restore the database"), "\(child.standardError)")
        #expect(size(of: "\(daemon.stateDirectory)/dld.db-wal") == log && log != 0)
    }

    @Test("a state directory that is moved, to another path and file system, goes on where it was")
    func moved() async throws {
        let server = try ScriptedServer([
            "/f": [.drip(Self.resource, after: mebibyte, bytesPerSecond: 100_000), .serve(Self.resource)]
        ])
        let first = try await DaemonProcess.started(quickRetries + oneConnection)
        let id = try await first.add(server.url("/f"))
        try await first.state(of: id, "to begin") { $0.bytesDone > mebibyte }
        #expect(try await first.terminate() == .exited(0))
        let elsewhere = try TemporaryDirectory(isFast: true)
        let state = elsewhere.file("state")
        #expect(try await run(["cp", "-a", first.stateDirectory, state]).succeeded)
        #expect(try await run(["rm", "-r", first.stateDirectory]).succeeded)
        let second = try DaemonProcess(
            configuration: quickRetries, stateDirectory: state, downloadDirectory: first.downloads)
        try await second.start()
        #expect(try await second.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: second.path("f")) == nil)
        #expect(server.requests(for: "/f").last?.header("range") != nil, "its bytes were kept")
        #expect(try await second.dlctl("status").output.contains("problems") == false)
        second.expectTidy()
    }
}
