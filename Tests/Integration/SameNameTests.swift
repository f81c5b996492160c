import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Many downloads with the same name.
@Suite("Same names", .serialized, .timeLimit(.minutes(3)))
struct SameNameTests {
    private func add(_ count: Int, _ daemon: DaemonProcess, _ server: ScriptedServer) async throws {
        let urls = Array(repeating: server.url("/f.bin"), count: count)
        let outcome = try await daemon.dlctl(["add", "--wait", "--input", "-"], input: urls.joined(separator: "\n"))
        #expect(outcome.succeeded, "\(outcome.error)")
    }

    @Test("a thousand downloads of one name get the numbers from 1 on, without a gap")
    func dense() async throws {
        let server = try ScriptedServer(["/f.bin": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        try await add(1_000, daemon, server)
        let wanted = Set(["f.bin"] + (1..<1_000).map { "f (\($0)).bin" })
        #expect(Set(TemporaryDirectory.names(in: daemon.downloads)) == wanted)
        daemon.expectTidy()
    }

    @Test("beyond ten thousand names the next number is given all the same")
    func many() async throws {
        let server = try ScriptedServer(["/f.bin": [.serve(Resource(size: 100))]])
        let daemon = try await DaemonProcess.started()
        for number in 0..<10_100 {
            try Resource(size: 1).write(to: daemon.path(number == 0 ? "f.bin" : "f (\(number)).bin"))
        }
        try await add(3, daemon, server)
        for number in 10_100..<10_103 { #expect(size(of: daemon.path("f (\(number)).bin")) == 100) }
        daemon.expectTidy()
    }
}
