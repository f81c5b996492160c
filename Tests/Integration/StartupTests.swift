import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

private let hasSocketActivate = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
    .contains { access("\($0)/systemd-socket-activate", X_OK) == 0 }

/// A daemon that is started for a client and cannot start.
@Suite(
    "A start that fails", .serialized, .timeLimit(.minutes(1)),
    .enabled(if: hasSocketActivate, "systemd-socket-activate is not here"))
struct StartupTests {
    /// Has systemd's tool listen on the daemon's socket, and start the daemon for the first client.
    private func activate(_ daemon: DaemonProcess) async throws -> ChildProcess {
        var arguments = daemon.arguments
        let flag = try #require(arguments.firstIndex(of: "--socket"))
        arguments.removeSubrange(flag...flag + 1)
        let child = try ChildProcess(
            ["systemd-socket-activate", "--listen", daemon.socket, try DaemonProcess.program("dld")] + arguments,
            directory: daemon.directory.path)
        try await eventually(that: "the socket is there") { access(daemon.socket, F_OK) == 0 }
        return child
    }

    @Test("each client is told the mistake in the configuration, and the daemon starts once it is mended")
    func configuration() async throws {
        let daemon = try DaemonProcess(configuration: "downlods: {}\n")
        let child = try await activate(daemon)
        for _ in 0..<3 {
            let refused = try await daemon.dlctl("list")
            #expect(refused.status == .exited(69), "\(refused)")
            #expect(
                refused.error.contains("dld.yaml:1:1: `downlods` is not a key here; did you mean `downloads`?"),
                "\(refused.error)")
            #expect(refused.error.contains("the next command starts it"))
        }
        try daemon.configure("downloads: {}\n")
        try await eventually(that: "the daemon serves") { try await daemon.dlctl("list").succeeded }
        child.kill(SIGTERM)
        #expect(try await child.wait() == .exited(0), "\(child.standardError)")
    }

    @Test("with nobody to tell any more, it ends with 78, and names the mistake")
    func ends() async throws {
        let daemon = try DaemonProcess(configuration: "limits: {active-tasks: 0}\n")
        let child = try await activate(daemon)
        #expect(try await daemon.dlctl("status").status == .exited(69))
        #expect(try await child.wait(within: .seconds(20)) == .exited(78))
        #expect(child.standardError.contains("dld.yaml:1:24: `active-tasks` must be"), "\(child.standardError)")
    }

    @Test("a database that is none is named to each client, and is left as it was")
    func database() async throws {
        let daemon = try DaemonProcess()
        let path = try daemon.directory.write("not a database, but long enough to be looked at", to: "state/dld.db")
        let child = try await activate(daemon)
        let refused = try await daemon.dlctl("list")
        #expect(refused.status == .exited(69))
        #expect(refused.error.contains("\(path) is not a database of dld; move it away"), "\(refused.error)")
        #expect(try await child.wait(within: .seconds(20)) == .exited(65))
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("not a database"))
    }
}
