import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// `dlctl set` on real daemons: changes of a file's place, its mirrors, its digest, and of several tasks.
@Suite("Changed places, sources and selections", .serialized, .timeLimit(.minutes(3)))
struct ChangedPlaceTests {
    private let resource = Resource(size: 24 * mebibyte)

    private func sum(_ daemon: DaemonProcess) async throws -> String {
        let path = daemon.directory.file("sum")
        try resource.write(to: path)
        return "sha256:" + (try await run(["sha256sum", path])).output.prefix(64)
    }

    @Test(
        "a task goes on in another directory over kills, with the bytes that it has, on one connection and on several",
        arguments: ["1", "4"])
    func directory(connections: String) async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 2_000_000)])
        try nginx.publish(resource, as: "f")
        let daemon = try await DaemonProcess.started(quickRetries + "limits: {connections-per-task: \(connections)}\n")
        let id = try await daemon.add(
            "--checksum", try await sum(daemon), "--mirror", nginx.url("/f"), "--limit", "2M", nginx.url("/slow/f"))
        try await daemon.state(of: id, "to receive") { $0.bytesDone > 3 * mebibyte }
        // Most of the file is left after the changes, however long these take.
        #expect(try await daemon.dlctl("set", id.description, "--limit", "100K").succeeded)
        for number in 1...4 {
            let set = try await daemon.dlctl("set", id.description, "--directory", "place\(number)")
            #expect(set.succeeded, "\(set.error)")
            if number % 2 == 0 {
                try await daemon.kill()
                try await daemon.start()
            }
            #expect(daemon.partFiles.count == 1 && daemon.partFiles.first?.hasPrefix("place\(number)/") == true)
        }
        #expect(try await daemon.dlctl("set", id.description, "--limit", "none").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        let task = try daemon.task(id)
        #expect(task.verified && task.path == daemon.path("place4/f"))
        #expect(resource.difference(fromFileAt: daemon.path("place4/f")) == nil)
        #expect(task.bytesFetched < resource.size / 4 * 5, "\(task.bytesFetched)")
        daemon.expectTidy()
    }

    @Test("several tasks change in one call, which says how many, and complains about each that could not be")
    func several() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try await DaemonProcess.started(quickRetries + onlyDownloads)
        let done = try await daemon.add(server.url("/a"))
        #expect(try await daemon.settled(done).state == .completed)
        let added = try await daemon.dlctl(
            ["add", "--paused", "--batch", "b"] + (0..<50).map { "http://127.0.0.1:9/\($0)" })
        #expect(added.lines.count == 50)
        let all = try await daemon.dlctl("set", "--batch", "b", "--directory", "isos", "--priority", "low")
        #expect(all.succeeded && all.lines == ["50 tasks changed"], "\(all.error)")
        #expect(try daemon.task(done).path == daemon.path("a"))
        #expect(try daemon.tasks().filter { $0.path?.hasPrefix(daemon.path("isos/")) == true }.count == 50)
        let some = try await daemon.dlctl(["set"] + added.lines + [done.description, "99", "--limit", "1M"])
        #expect(some.status == .exited(1) && some.lines == ["50 tasks changed"])
        #expect(some.error.contains("task \(done) is completed") && some.error.contains("no task has the id 99"))
        let one = try await daemon.dlctl("set", "--batch", "b", "--url", server.url("/a"))
        #expect(one.status == .exited(64) && one.error.contains("--url can be used with one task only"), "\(one.error)")
        let outside = try await daemon.dlctl("set", "--all", "--directory", "/etc")
        #expect(outside.status == .exited(64) && outside.error.contains("downloads.roots"), "\(outside.error)")
    }

    @Test("several files go beneath a URL that ends in a slash, each under its own name, by one call or a queue file")
    func uploads() async throws {
        let nginx = try await Nginx([.dav("/dav/")])
        let daemon = try await DaemonProcess.started()
        let names = ["a.tar", "b c%.tar", "ü.tar"]
        for (index, name) in names.enumerated() {
            try Resource(size: 1_000, seed: UInt64(index)).write(to: daemon.directory.file(name))
        }
        let files = names.map { daemon.directory.file($0) }
        let outcome = try await daemon.dlctl(["upload", "--wait"] + files + [nginx.url("/dav/in/")])
        #expect(outcome.succeeded && outcome.lines.count == 3, "\(outcome.error)")
        let queue = try daemon.directory.write(
            "uploads:\n  - {file: 'b c%.tar', url: '\(nginx.url("/dav/queue/"))'}\n", to: "uploads.yaml")
        #expect(try await daemon.dlctl("add", "--wait", "--input", queue).succeeded)
        for (index, name) in names.enumerated() {
            let resource = Resource(size: 1_000, seed: UInt64(index))
            #expect(resource.difference(fromFileAt: "\(nginx.uploads)/in/\(name)") == nil)
        }
        #expect(exists("\(nginx.uploads)/queue/b c%.tar"))
        let moved = try await daemon.upload("--paused", files[2], "http://127.0.0.1:9/none")
        #expect(try await daemon.dlctl("set", "\(moved)", "--url", nginx.url("/dav/set/")).succeeded)
        #expect(try await daemon.dlctl("resume", "\(moved)").succeeded)
        #expect(try await daemon.settled(moved).state == .completed && exists("\(nginx.uploads)/set/ü.tar"))
        let refused = try await daemon.dlctl(["upload"] + files + [nginx.url("/dav/in")])
        #expect(refused.status == .exited(64) && refused.error.contains("ends in /"), "\(refused.error)")
    }

    @Test("what is there already is told of, with its state, and nothing is added")
    func found() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")]])
        let daemon = try await DaemonProcess.started()
        let first = try await daemon.dlctl("add", "--wait", "--key", "k", server.url("/a"))
        #expect(first.lines == ["1", "\(daemon.downloads)/a"] && !first.error.contains("already"))
        let second = try await daemon.dlctl("add", "--key", "k", server.url("/a"))
        #expect(second.succeeded && second.lines == ["1"])
        #expect(second.error.contains("task 1 already has the key k (completed); nothing was added"))
        let json = try await daemon.dlctl("--json", "add", "--key", "k", server.url("/a"))
        #expect(json.lines == [#"{"found":[1],"ids":[1]}"#] && json.error.isEmpty)
        let list = try daemon.directory.write("\(server.url("/b"))\n\(server.url("/none"))\n", to: "list")
        let waited = try await daemon.dlctl("add", "--wait", "--input", list, "--batch", "b")
        #expect(waited.lines == ["2", "3", "\(daemon.downloads)/b"])
        let again = try await daemon.dlctl("add", "--input", list, "--batch", "b")
        #expect(again.lines == [])
        #expect(again.error.contains("nothing to add: 2 tasks already exist (1 completed, 1 failed)"))
        let counted = try await daemon.dlctl("--json", "add", "--input", list, "--batch", "b")
        #expect(counted.lines == [#"{"found":[],"ids":[],"unchanged":2,"updated":0}"#])
    }
}
