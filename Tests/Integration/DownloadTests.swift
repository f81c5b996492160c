import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Downloads", .serialized, .timeLimit(.minutes(3)))
struct DownloadTests {
    @Test("a file arrives byte for byte under the name that the URL gives it")
    func plain() async throws {
        let nginx = try await Nginx()
        let resource = Resource(size: 5 * mebibyte + 3)
        try nginx.publish(resource, as: "disk.img")
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("add", "--wait", nginx.url("/disk.img"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: daemon.path("disk.img")) == nil)

        let id = TaskID(try #require(outcome.lines.first.flatMap { Int64($0) }))
        let task = try daemon.task(id)
        #expect(task.state == .completed)
        #expect(task.path == daemon.path("disk.img"))
        #expect(task.bytesDone == resource.size)
        #expect(task.bytesTotal == resource.size)
        #expect(task.bytesFetched == resource.size)
        #expect(task.error == nil)
        #expect(task.owner == getuid())
        #expect(task.finishedAt != nil)
        daemon.expectTidy()
    }

    @Test("several URLs get an id each, in order, as lines or as JSON")
    func several() async throws {
        let server = try ScriptedServer([
            "/a": [.serve(Resource(size: 1000, seed: 1))], "/b": [.serve(Resource(size: 2000, seed: 2))],
        ])
        let daemon = try await DaemonProcess.started()
        let lines = try await daemon.dlctl("add", server.url("/a"), server.url("/b"))
        #expect(lines.lines.compactMap { Int64($0) }.count == 2)
        let json = try await daemon.dlctl("add", "--json", "--directory", "more", server.url("/a"), server.url("/b"))
        struct Added: Decodable { let ids: [TaskID] }
        let added = try JSONDecoder().decode(Added.self, from: Data(json.output.utf8))
        #expect(added.ids.count == 2)
        let waited = try await daemon.dlctl(["wait"] + lines.lines + added.ids.map(\.description))
        #expect(waited.status == .exited(0), "\(waited.error)")
        #expect(Resource(size: 1000, seed: 1).difference(fromFileAt: daemon.path("a")) == nil)
        #expect(Resource(size: 2000, seed: 2).difference(fromFileAt: daemon.path("more/b")) == nil)
        let list = try await daemon.dlctl("list", "--json")
        let tasks = try JSONDecoder().decode([TaskStatus].self, from: Data(list.output.utf8))
        #expect(tasks.map(\.state) == [.completed, .completed, .completed, .completed])
        daemon.expectTidy()
    }

    @Test("a list of URLs from standard input is queued whole")
    func list() async throws {
        let server = try ScriptedServer([
            "/1": [.serve(Resource(size: 10, seed: 1))], "/2": [.serve(Resource(size: 20, seed: 2))],
        ])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl(
            ["add", "--wait", "--input", "-"], input: "\(server.url("/1"))\n\(server.url("/2"))\n")
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(Resource(size: 10, seed: 1).difference(fromFileAt: daemon.path("1")) == nil)
        #expect(Resource(size: 20, seed: 2).difference(fromFileAt: daemon.path("2")) == nil)
    }

    @Test("files of no byte and of one byte arrive")
    func small() async throws {
        let nginx = try await Nginx()
        try nginx.publish(Resource(size: 0), as: "none")
        try nginx.publish(Resource(size: 1), as: "one")
        let server = try ScriptedServer(["/chunked-none": [.chunked(Resource(size: 0))]])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl(
            "add", "--wait", nginx.url("/none"), nginx.url("/one"), server.url("/chunked-none"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(size(of: daemon.path("none")) == 0)
        #expect(size(of: daemon.path("chunked-none")) == 0)
        #expect(Resource(size: 1).difference(fromFileAt: daemon.path("one")) == nil)
        daemon.expectTidy()
    }

    @Test("a redirect is followed")
    func redirect() async throws {
        let resource = Resource(size: 70_000)
        let server = try ScriptedServer(["/old": [.redirect("/new")], "/new": [.serve(resource)]])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("add", "--wait", "-o", "file", server.url("/old"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
    }

    @Test("a wrong checksum fails the task, and no file appears; a right one is said to be verified")
    func checksum() async throws {
        let server = try ScriptedServer(["/file": [.status(200, body: "hello\n")]])
        let daemon = try await DaemonProcess.started()
        let right = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        let good = try await daemon.add("--checksum", right, "-o", "good", server.url("/file"))
        #expect(try await daemon.settled(good).verified)
        let wrong = "sha256:" + String(repeating: "0", count: 64)
        let bad = try await daemon.add("--checksum", wrong, "-o", "bad", server.url("/file"))
        let task = try await daemon.settled(bad)
        #expect(task.state == .failed)
        #expect(task.error?.code == .checksumMismatch)
        #expect(!exists(daemon.path("bad")))
    }

    @Test("A5: a name that is taken is not overwritten: the newcomer gets a number")
    func conflict() async throws {
        let resource = Resource(size: 500)
        let server = try ScriptedServer(["/file.txt": [.serve(resource)]])
        let daemon = try await DaemonProcess.started()
        try daemon.directory.write("mine", to: "downloads/file.txt")
        let outcome = try await daemon.dlctl("add", "--wait", server.url("/file.txt"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(try text(of: daemon.path("file.txt")) == "mine")
        #expect(resource.difference(fromFileAt: daemon.path("file (1).txt")) == nil)
    }
}
