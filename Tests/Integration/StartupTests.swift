import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// A daemon that is started for a client and cannot start.
@Suite("A start that fails", .serialized, .timeLimit(.minutes(2)))
struct StartupTests {
    @Test("each client is told the mistake in the configuration, and the daemon starts once it is mended")
    func configuration() async throws {
        let daemon = try DaemonProcess(configuration: "downlods: {}\n")
        let unit = try SocketUnit(daemon)
        for _ in 0..<3 {
            let refused = try await daemon.dlctl("list")
            #expect(refused.status == .exited(69), "\(refused)")
            #expect(
                refused.error.contains("dld.yaml:1:1: \"downlods\" is not a key here; did you mean \"downloads\"?"),
                "\(refused.error)")
            #expect(refused.error.contains("the next command starts the daemon again"))
        }
        try daemon.configure("downloads: {}\n")
        try await eventually(that: "the daemon serves") { try await daemon.dlctl("list").succeeded }
        let log = daemon.log
        // On a slow machine the daemon may be idle for so long that it ends; the next client starts another one.
        let ends = try await unit.stop()
        #expect(ends.last == .exited(0), "\(log)")
        #expect(ends.dropLast().allSatisfy { $0 == .exited(78) }, "\(ends)")
    }

    @Test("with nobody to tell any more, it ends with 78, and names the mistake")
    func ends() async throws {
        let daemon = try DaemonProcess(configuration: "limits: {active-tasks: 0}\n")
        let unit = try SocketUnit(daemon)
        #expect(try await daemon.dlctl("status").status == .exited(69))
        try await unit.waitForEnd()
        #expect(daemon.log.contains("dld.yaml:1:24: \"active-tasks\" must be"), "\(daemon.log)")
        #expect(try await unit.stop() == [.exited(78)])
    }

    @Test("a backup beside the log of another database is named to each client, and both are left as they were")
    func foreignLog() async throws {
        let daemon = try await DaemonProcess.started()
        let path = daemon.stateDirectory + "/dld.db"
        _ = try await daemon.add("--paused", "http://127.0.0.1:9/a")
        let backup = daemon.directory.file("backup")
        #expect(try await daemon.dlctl("backup", backup).succeeded)
        _ = try await daemon.add("--paused", "http://127.0.0.1:9/b")
        try await daemon.kill()
        let log = try #require(FileManager.default.contents(atPath: path + "-wal"))
        #expect(!log.isEmpty && unlink(path) == 0 && unlink(daemon.socket) == 0)
        try FileManager.default.copyItem(atPath: backup, toPath: path)
        let unit = try SocketUnit(daemon)
        let refused = try await daemon.dlctl("list")
        #expect(refused.status == .exited(69))
        #expect(
            refused.error.contains(
                "\(path) is a copy, and \(path)-wal is the log of the database that was there before"),
            "\(refused.error)")
        try await unit.waitForEnd()
        #expect(FileManager.default.contents(atPath: path + "-wal") == log)
        #expect(FileManager.default.contents(atPath: path) == FileManager.default.contents(atPath: backup))
        #expect(unlink(path + "-wal") == 0 && unlink(path + "-shm") == 0)
        try await eventually(that: "the daemon serves") { try await daemon.dlctl("list").succeeded }
        #expect(try daemon.tasks().count == 1)
        #expect(try await unit.stop().first == .exited(65))
    }

    @Test("F66: a database that is none is named to each client, and is left as it was")
    func database() async throws {
        let daemon = try DaemonProcess()
        let path = try daemon.directory.write("not a database, but long enough to be looked at", to: "state/dld.db")
        let unit = try SocketUnit(daemon)
        let refused = try await daemon.dlctl("list")
        #expect(refused.status == .exited(69))
        #expect(refused.error.contains("\(path) is not a database of dld; move it away"), "\(refused.error)")
        try await unit.waitForEnd()
        #expect(try await unit.stop() == [.exited(65)])
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("not a database"))
    }
}
