import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("What became of a finished file")
struct FinishedFileTests {
    @Test("the status of one task says whether its file is there, is another one, or is gone")
    func states() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "content")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        func state() async throws -> FileState? {
            try await fixture.queue.status(of: id, for: QueueFixture.administrator)?.fileState
        }
        #expect(try await state() == .present)
        try fixture.directory.write("another", to: "downloads/other")
        #expect(rename(fixture.downloads + "/other", fixture.downloads + "/a") == 0)
        #expect(try await state() == .replaced)
        #expect(unlink(fixture.downloads + "/a") == 0)
        #expect(try await state() == .missing)
    }

    @Test("a file that was cut short is not what the task left")
    func cut() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "content")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        #expect(truncate(fixture.downloads + "/a", 3) == 0)
        let status = try await fixture.queue.status(of: id, for: QueueFixture.administrator)
        #expect(status?.fileState == .replaced)
    }

    @Test("a file that was changed since is not removed with its task")
    func changed() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "content")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.completed(id)
        let descriptor = open(fixture.downloads + "/a", O_WRONLY | O_APPEND)
        #expect(write(descriptor, " and a note", 11) == 11 && close(descriptor) == 0)
        let outcome = try await fixture.queue.remove([id], deletesFiles: true, by: QueueFixture.me)
        guard case .keptFile(let kept)? = outcome.refused.first?.reason else { throw Unusable(reason: "\(outcome)") }
        #expect(outcome.changed == 1 && kept.reason == "it is not the downloaded file, or was changed since")
        #expect(try String(contentsOfFile: fixture.downloads + "/a", encoding: .utf8) == "content and a note")
    }

    @Test("a link in the place of its directory, or of the file, tells nothing of what it leads to")
    func links() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "content")]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.directory = "sub" }
        _ = try await fixture.completed(id)
        func state() async throws -> FileState? {
            try await fixture.queue.status(of: id, for: QueueFixture.administrator)?.fileState
        }
        let (place, secret) = (fixture.downloads + "/sub", try fixture.directory.makeDirectory("secret"))
        #expect(rename(place, fixture.downloads + "/moved") == 0 && symlink(secret, place) == 0)
        let without = try await state()
        try fixture.directory.write("content", to: "secret/a")
        #expect(try await state() == without && without == nil)
        #expect(unlink(place) == 0 && rename(fixture.downloads + "/moved", place) == 0)
        #expect(try await state() == .present)
        #expect(unlink(place + "/a") == 0 && symlink(secret + "/a", place + "/a") == 0)
        #expect(try await state() == .replaced)
        #expect(unlink(secret + "/a") == 0)
        #expect(try await state() == .replaced)
    }
}
