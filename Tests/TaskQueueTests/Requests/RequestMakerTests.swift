import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Names, conflicts and what an earlier life left")
struct RequestMakerTests {
    private let body = Resource(size: 200_000)

    @Test("two tasks with one name end with two files")
    func sameName() async throws {
        let other = Resource(size: 200_000, seed: 2)
        let server = try ScriptedServer(["/1/a.iso": [.serve(body)], "/2/a.iso": [.serve(other)]])
        let fixture = try await QueueFixture()
        let ids = try await fixture.queue.add(
            ["/1/a.iso", "/2/a.iso"].map { TaskSpecification(url: server.url($0)) }, by: QueueFixture.me)
        let names = [try await fixture.completed(ids[0]).name, try await fixture.completed(ids[1]).name]
        #expect(fixture.files == ["a (1).iso", "a.iso"])
        #expect(names.compactMap { $0 }.sorted() == fixture.files)
        #expect(body.difference(fromFileAt: fixture.downloads + "/" + (names[0] ?? "")) == nil)
        #expect(other.difference(fromFileAt: fixture.downloads + "/" + (names[1] ?? "")) == nil)
    }

    @Test("a name that is taken is treated as asked", arguments: ConflictPolicy.allCases)
    func conflict(policy: ConflictPolicy) async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "new")]])
        let fixture = try await QueueFixture()
        try fixture.directory.write("old", to: "downloads/taken")
        // The file must belong to the caller.
        if getuid() == 0 { #expect(chown(fixture.downloads + "/taken", QueueFixture.me.uid, 0) == 0) }
        let id = try await fixture.add(server.url("/a")) { task in
            task.output = "taken"
            task.onConflict = policy
        }
        let status = try await fixture.status(id, once: [.completed, .failed])
        func content(_ name: String) -> String? {
            try? String(decoding: Data(contentsOf: URL(filePath: fixture.downloads + "/" + name)), as: UTF8.self)
        }
        #expect(fixture.files == (policy == .rename ? ["taken", "taken (1)"] : ["taken"]))
        #expect(content("taken") == (policy == .overwrite ? "new" : "old"))
        #expect(status.state == (policy == .fail ? .failed : .completed))
        #expect(status.error?.code == (policy == .fail ? .nameConflict : nil))
        #expect(server.requests().isEmpty == (policy == .skip || policy == .fail))
        if policy == .rename { #expect(content("taken (1)") == "new" && status.name == "taken (1)") }
    }

    @Test("a file that was published just before a crash is known again and not fetched")
    func published() async throws {
        let checksum = "md5:5d41402abc4b2a76b9719d911017c592"
        let server = try ScriptedServer([
            "/a": [.serveThenCut(body, after: 100_000), .serveThenCut(body, after: 0)]
        ])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a")) { $0.checksum = checksum }
        let next = try await fixture.nextLife(of: id, whichFinished: body, as: "a")
        let asked = server.requests().count
        try await QueueFixture.takeUp(id, in: next)
        let status = try await fixture.status(id, once: [.completed], in: next)
        #expect(server.requests().count == asked)
        #expect(status.bytesDone == body.size && status.bytesTotal == body.size)
        #expect(status.path == fixture.downloads + "/a" && status.verified)
        #expect(fixture.files == ["a"])
        await next.stop()
    }

    @Test("a stranger's file of the same name is not taken for one's own")
    func stranger() async throws {
        let server = try ScriptedServer(["/a": [.serve(body)]])
        let fixture = try await QueueFixture()
        try Resource(size: 200_000, seed: 9).write(to: fixture.downloads + "/a")
        let id = try await fixture.add(server.url("/a"))
        #expect(try await fixture.completed(id).name == "a (1)")
        #expect(body.difference(fromFileAt: fixture.downloads + "/a (1)") == nil)
    }

    @Test("a directory that is moved away while others run is made anew for the next")
    func movedDirectory() async throws {
        let server = try ScriptedServer([
            "/slow": [.hang], "/a": [.serve(body)], "/b": [.serve(body)], "/c": [.serve(body)],
        ])
        let fixture = try await QueueFixture()
        // One task runs all the time.
        let slow = try await fixture.add(server.url("/slow"))
        _ = try await fixture.completed(try await fixture.add(server.url("/a")) { $0.directory = "sub" })
        #expect(rename(fixture.downloads + "/sub", fixture.downloads + "/old") == 0)
        _ = try await fixture.completed(try await fixture.add(server.url("/b")) { $0.directory = "sub" })
        #expect(body.difference(fromFileAt: fixture.downloads + "/sub/b") == nil)
        #expect(body.difference(fromFileAt: fixture.downloads + "/old/a") == nil)
        // A link in its place is not followed, even if it leads to the original directory.
        let away = fixture.directory.file("away")
        #expect(rename(fixture.downloads + "/sub", away) == 0 && symlink(away, fixture.downloads + "/sub") == 0)
        let refused = try await fixture.add(server.url("/c")) { $0.directory = "sub" }
        #expect(try await fixture.status(refused, once: [.failed]).error?.code == .pathNotAllowed)
        _ = try await fixture.queue.apply(.cancel, to: [slow], by: QueueFixture.me)
    }

    @Test("a link that has the name tells a task that skips nothing of the file behind it, nor of its size")
    func skippedLink() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "new")]])
        let fixture = try await QueueFixture()
        let secret = fixture.directory.file("secret")
        #expect(symlink(secret, fixture.downloads + "/taken") == 0)
        func outcome() async throws -> [String] {
            let id = try await fixture.add(server.url("/a")) { task in
                task.output = "taken"
                task.onConflict = .skip
            }
            let status = try await fixture.status(id, once: [.completed, .failed])
            return [
                "\(status.state)", "\(status.bytesDone)", "\(String(describing: status.bytesTotal))",
                "\(String(describing: status.error))", "\(String(describing: status.fileState))",
            ]
        }
        let nothing = try await outcome()
        try fixture.directory.write("small", to: "secret")
        let small = try await outcome()
        try fixture.directory.write(String(repeating: "large", count: 1_000), to: "secret")
        #expect(small == nothing)
        #expect(try await outcome() == nothing)
    }
}
