import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Changes to the daemon's files by a person or another program while it works on them.
@Suite("Meddling with files", .serialized, .timeLimit(.minutes(3)))
struct MeddlingTests {
    enum Meddling: String, CaseIterable {
        case truncated, emptied, modified, deleted, replaced

        func apply(to path: String) throws {
            switch self {
            case .truncated: try #require(truncate(path, 100_000) == 0)
            case .emptied: try #require(truncate(path, 0) == 0)
            case .modified:
                let descriptor = open(path, O_WRONLY | O_CLOEXEC)
                defer { close(descriptor) }
                try #require(pwrite(descriptor, "not what came", 13, 50_000) == 13)
            case .deleted: try #require(unlink(path) == 0)
            case .replaced:
                // A different file of the same size.
                let length = try #require(size(of: path))
                try #require(unlink(path) == 0)
                try Resource(size: length, seed: 77).write(to: path)
            }
        }
    }

    private static let resource = Resource(size: 2 * mebibyte, seed: 6)
    private static let script = script(bytesPerSecond: 400_000)

    /// Returns a script whose first response leaves time to change the part file.
    private static func script(bytesPerSecond rate: Int) -> [String: [ScriptedAnswer]] {
        ["/f": [.drip(resource, after: mebibyte, bytesPerSecond: rate), .serve(resource)]]
    }

    private func begun(_ server: ScriptedServer, _ options: String...) async throws -> (DaemonProcess, TaskID, String) {
        let daemon = try await DaemonProcess.started(ShortSet.configuration)
        let outcome = try await daemon.dlctl(["add"] + options + [server.url("/f")])
        let id = TaskID(try #require(outcome.lines.first.flatMap { Int64($0) }, "\(outcome)"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone >= mebibyte / 2 }
        return (daemon, id, daemon.path(try #require(daemon.partFiles.first)))
    }

    private func expectExact(_ id: TaskID, _ daemon: DaemonProcess) async throws {
        var invariants = Invariants(daemon, context: "F67")
        invariants.wishes = [.init(id: id, resource: Self.resource, names: ["f"])]
        try await invariants.finish()
    }

    @Test(
        "F67: a part that someone changed while its task was paused does not reach the file",
        arguments: Meddling.allCases)
    func paused(meddling: Meddling) async throws {
        let server = try ScriptedServer(Self.script(bytesPerSecond: 50_000))
        let (daemon, id, part) = try await begun(server)
        #expect(try await daemon.dlctl("pause", id.description).succeeded)
        try meddling.apply(to: part)
        #expect(try await daemon.dlctl("resume", id.description).succeeded)
        try await expectExact(id, daemon)
    }

    @Test(
        "F67: a part that someone changed while it was written does not reach the file",
        arguments: Meddling.allCases)
    func running(meddling: Meddling) async throws {
        let server = try ScriptedServer(Self.script)
        let (daemon, id, part) = try await begun(server)
        try meddling.apply(to: part)
        try await expectExact(id, daemon)
    }

    @Test("F67: with a checksum nothing that someone did to the part goes unseen", arguments: Meddling.allCases)
    func summed(meddling: Meddling) async throws {
        let server = try ScriptedServer(Self.script)
        let (daemon, id, part) = try await begun(server, "--checksum", "sha-256:\(checksum(of: Self.resource))")
        try meddling.apply(to: part)
        try await expectExact(id, daemon)
        #expect(try daemon.task(id).verified)
    }

    @Test("F68: a name that is taken meanwhile makes a numbered name, and the other's file stays")
    func takenAndRenamed() async throws {
        let server = try ScriptedServer(Self.script)
        let (daemon, id, _) = try await begun(server)
        let other = Resource(size: 1000, seed: 8)
        try other.write(to: daemon.path("f"))
        var invariants = Invariants(daemon, context: "F68")
        invariants.bystanders["f"] = other
        invariants.wishes = [.init(id: id, resource: Self.resource, names: ["f (1)"])]
        try await invariants.finish()
    }

    @Test("F68: with on-conflict fail the task fails with name-conflict, and goes on without a byte more when it may")
    func takenAndRefused() async throws {
        let server = try ScriptedServer(Self.script)
        let (daemon, id, _) = try await begun(server, "--on-conflict", "fail")
        let other = Resource(size: 1000, seed: 8)
        try other.write(to: daemon.path("f"))
        let task = try await daemon.settled(id)
        #expect(task.state == .failed)
        #expect(task.error?.code == .nameConflict)
        #expect(other.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(daemon.partFiles.count == 1)
        #expect(unlink(daemon.path("f")) == 0)
        #expect(try await daemon.dlctl("retry", id.description).succeeded)
        try await expectExact(id, daemon)
        #expect(server.requests().count == 1)
    }
}
