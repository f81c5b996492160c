import Glibc
import TaskModel
import TestSupport
import Testing

/// Files that are fetched again only if they changed.
@Suite("Updates", .serialized, .timeLimit(.minutes(3)))
struct UpdateTests {
    private let nginx: Nginx
    private let daemon: DaemonProcess

    init() async throws {
        nginx = try await Nginx()
        daemon = try await DaemonProcess.started()
    }

    private func publish(_ name: String, seed: UInt64, at time: Int) throws {
        try nginx.publish(Resource(size: 1_000, seed: seed), as: name)
        var times = [timespec(tv_sec: time, tv_nsec: 0), timespec(tv_sec: time, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, "\(nginx.root)/\(name)", &times, 0) == 0)
    }

    private func statuses(_ name: String) -> [Int] { nginx.accesses(for: "/\(name)").map(\.status) }

    @Test("an update of a file that is there needs one request and no byte, and says so everywhere")
    func added() async throws {
        try publish("a.bin", seed: 1, at: 1_000_000)
        func add(_ options: String...) async throws -> TaskStatus {
            let result = try await daemon.dlctl(["add", "--wait", "--json", nginx.url("/a.bin")] + options)
            #expect(result.succeeded, "\(result)")
            return try #require(try daemon.tasks().last)
        }
        // The first file has no record; its time and size are compared with the response.
        #expect(try await add().reason == nil)
        let second = try await add("--update")
        #expect((second.state, second.reason, second.bytesFetched) == (.completed, .unchanged, 0))
        #expect(second.bytesDone == 1_000 && second.path == daemon.path("a.bin"))
        try publish("a.bin", seed: 2, at: 1_000_000)
        #expect(try await add("--update").reason == .unchanged, "the same size and time")
        try publish("a.bin", seed: 2, at: 1_000_001)
        #expect(try await add("--update").reason == nil)
        #expect(Resource(size: 1_000, seed: 2).difference(fromFileAt: daemon.path("a.bin")) == nil)
        #expect(try await add("--update").reason == .unchanged)
        try await eventually(that: "nginx wrote down the last answer") { statuses("a.bin").count == 5 }
        #expect(statuses("a.bin") == [200, 200, 304, 200, 304])
        #expect(try await daemon.dlctl("list").output.contains("completed, unchanged"))
        #expect(try await daemon.dlctl("show", second.id.description).output.contains("completed, unchanged"))
        #expect(try await daemon.dlctl("events", "--on", "completed").output.contains("a.bin, unchanged"))
        let owned = try await daemon.dlctl("events", "--owner", "\(getuid())", "--json", "--on", "completed")
        #expect(owned.lines.filter { $0.contains("\"reason\":\"unchanged\"") }.count == 3)
        #expect(TemporaryDirectory.names(beneath: daemon.downloads) == ["a.bin"])
        daemon.expectTidy()
        let refused = try await daemon.dlctl("add", "--update", "--on-conflict", "skip", nginx.url("/a.bin"))
        #expect(refused.status == .exited(64) && refused.error.contains("--on-conflict"), "\(refused)")
    }

    @Test("a queue file keeps a mirror: what changed is fetched, what it no longer names is pruned")
    func mirror() async throws {
        let names = (1...20).map { "f\($0)" }
        for name in names { try publish(name, seed: 1, at: 1_000_000) }
        func apply(_ names: some Sequence<String>) async throws -> String {
            let urls = names.map { "  - \(nginx.url("/\($0)"))\n" }.joined()
            let file = try daemon.directory.write("defaults: {update: true}\ndownloads:\n" + urls, to: "mirror.yaml")
            let result = try await daemon.dlctl("queue", "apply", file, "--prune")
            #expect(try await daemon.dlctl("wait", "--batch", "mirror").succeeded)
            return result.output + result.error
        }
        #expect(try await apply(names) == "20 added, 0 updated, 0 unchanged, 0 pruned\n")
        #expect(try await apply(names) == "0 added, 0 updated, 0 unchanged, 20 checked again, 0 pruned\n")
        #expect(try daemon.tasks().allSatisfy { $0.reason == .unchanged && $0.bytesFetched == 0 && $0.attempts == 1 })
        for name in ["f3", "f4"] { try publish(name, seed: 2, at: 1_000_001) }
        #expect(unlink(daemon.path("f5")) == 0)
        #expect(try await apply(names.dropLast(2)) == "0 added, 0 updated, 0 unchanged, 18 checked again, 2 pruned\n")
        #expect(try daemon.tasks().filter { $0.reason == nil }.compactMap(\.name) == ["f3", "f4", "f5"])
        #expect(Resource(size: 1_000, seed: 2).difference(fromFileAt: daemon.path("f3")) == nil)
        #expect(try daemon.tasks().count == 18)
        #expect(exists(daemon.path("f20")), "files stay")
        #expect(try await apply(names.prefix(3)).contains("--prune: would cancel 15 of the 18 tasks"))
        daemon.expectTidy()
    }

    @Test("the daemon's own queue files prune where its configuration says so, and never by an empty file")
    func configured() async throws {
        for name in ["a", "b", "c"] { try publish(name, seed: 1, at: 1_000_000) }
        let path = daemon.directory.file("own.yaml")
        func reload(_ names: String...) async throws {
            let urls = names.map { "  - {url: '\(nginx.url("/\($0)"))', update: true}\n" }.joined()
            try daemon.directory.write("downloads:\n" + urls, to: "own.yaml")
            try daemon.configure("queues: [{files: \(path), prune: true}]\n")
            #expect(try await daemon.dlctl("reload").succeeded)
            #expect(try await daemon.dlctl("wait", "--batch", "own").succeeded)
        }
        try await reload("a", "b", "c")
        try await reload()
        #expect(try daemon.tasks().count == 3)
        try await reload("a")
        #expect(try daemon.tasks().map(\.name) == ["a"])
        #expect(try daemon.tasks().first?.reason == .unchanged)
    }
}
