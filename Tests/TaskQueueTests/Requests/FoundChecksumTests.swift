import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("A checksum that is found", .timeLimit(.minutes(1)))
struct FoundChecksumTests {
    private static let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test("a list's digest is told with the list while the task runs, and once it has completed")
    func list() async throws {
        let server = try ScriptedServer([
            "/a": [.hang, .status(200, body: "abc")], "/SHA256SUMS": [.status(200, body: "\(Self.digest)  a\n")],
        ])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.checksumURL = server.url("/SHA256SUMS") }
        try await eventually(that: "the list is read") {
            try await fixture.status(id).checksum == "sha-256:\(Self.digest)"
        }
        // Otherwise the attempt after the pause might get the response that hangs.
        try await eventually(that: "the file is requested") { server.requests(for: "/a").count == 1 }
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        #expect(try await fixture.status(id).checksum == "sha-256:\(Self.digest)")
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        let status = try await fixture.completed(id)
        #expect(status.checksum == "sha-256:\(Self.digest)" && status.verified)
        #expect(status.checksumURL == server.url("/SHA256SUMS"))
    }

    @Test("what was found for one URL is not told for another")
    func otherURL() async throws {
        let server = try ScriptedServer([
            "/a": [.hang], "/SHA256SUMS": [.status(200, body: "\(Self.digest)  a\n")],
        ])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.checksumURL = server.url("/SHA256SUMS") }
        try await eventually(that: "the list is read") { try await fixture.status(id).checksum != nil }
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        var changes = TaskChanges()
        changes.url = server.url("/b")
        _ = try await fixture.queue.update(id, by: changes, for: QueueFixture.me)
        #expect(try await fixture.status(id).checksum == nil)
    }
}
