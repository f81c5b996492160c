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
}
