import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Watched directories", .serialized, .timeLimit(.minutes(2)))
struct WatchTests {
    private static let configuration =
        quickRetries + "watch: [{directory: @DIR@/drop, defaults: {directory: dropped}}]\n"

    private func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    }

    private func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    @Test("a dropped file is queued, carried out and moved away; a wrong one tells what is wrong, and nothing ends")
    func dropped() async throws {
        let resource = Resource(size: 1000, seed: 1)
        let server = try ScriptedServer(["/a": [.serve(resource)], "/b": [.serve(resource)]])
        let daemon = try DaemonProcess(configuration: Self.configuration)
        // This file exists before the daemon starts.
        try daemon.directory.makeDirectory("drop")
        try daemon.directory.write("\(server.url("/a"))\n", to: "drop/early.txt")
        try await daemon.start()
        try daemon.directory.write("downloads: ['\(server.url("/b"))']\n", to: "drop/late.yaml")
        try daemon.directory.write("\(server.url("/c"))\n  spilt=4\n", to: "drop/wrong")
        let drop = daemon.directory.file("drop")
        for name in [".done/early.txt", ".done/late.yaml", ".failed/wrong"] {
            try await eventually(that: "\(name) is there", within: .seconds(30)) { exists("\(drop)/\(name)") }
        }
        #expect(
            try text("\(drop)/.failed/wrong.note.txt")
                == "wrong:2:3: \"spilt\" is not an option of aria2 input files; did you mean \"split\"?\n")
        #expect(try text("\(drop)/.done/early.txt.note.txt").hasPrefix("1 added, 0 updated, 0 unchanged\nids: "))
        let tasks = try daemon.tasks()
        #expect(tasks.count == 2 && tasks.allSatisfy { $0.owner == getuid() })
        for task in tasks { #expect(try await daemon.settled(task.id).state == .completed) }
        #expect(resource.difference(fromFileAt: daemon.path("dropped/a")) == nil)
        #expect(resource.difference(fromFileAt: daemon.path("dropped/b")) == nil)
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("whenever the daemon is killed, each dropped file is queued once")
    func killed() async throws {
        let daemon = try DaemonProcess(configuration: Self.configuration)
        let drop = try daemon.directory.makeDirectory("drop")
        let count = 12
        for round in 0..<count {
            try await daemon.start()
            let list = "downloads: [{url: 'http://127.0.0.1:1/\(round)', paused: true}]\n"
            try daemon.directory.write(list, to: "drop/.\(round)")
            #expect(rename("\(drop)/.\(round)", "\(drop)/\(round)") == 0)
            // The kills fall before the file is seen, during its processing and after it.
            usleep(useconds_t(round) * 2_000)
            try await daemon.kill()
        }
        try await daemon.start()
        try await eventually(that: "all are moved away", within: .seconds(60)) {
            (0..<count).allSatisfy { !exists("\(drop)/\($0)") }
        }
        let moved = TemporaryDirectory.names(beneath: drop + "/.done").sorted()
        #expect(moved == (0..<count).flatMap { ["\($0)", "\($0).note.txt"] }.sorted())
        #expect(try daemon.tasks().map(\.url).sorted() == (0..<count).map { "http://127.0.0.1:1/\($0)" }.sorted())
    }

    @Test("a reload watches what the changed configuration names, and no longer what it does not")
    func reload() async throws {
        let daemon = try DaemonProcess(configuration: Self.configuration)
        try daemon.directory.makeDirectory("drop")
        let other = try daemon.directory.makeDirectory("other")
        try await daemon.start()
        try daemon.directory.write("watch: [{directory: \(other)}]\n", to: "dld.yaml")
        let outcome = try await daemon.dlctl("reload")
        #expect(outcome.succeeded, "\(outcome)")
        let list = "downloads: [{url: 'http://127.0.0.1:1/a', paused: true}]\n"
        try daemon.directory.write(list, to: "drop/list")
        try daemon.directory.write(list, to: "other/list")
        try await eventually(that: "the new one is watched", within: .seconds(30)) { exists("\(other)/.done/list") }
        #expect(exists(daemon.directory.file("drop/list")))
        #expect(try daemon.tasks().count == 1)
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("where downloads go nothing is watched, and the check of the configuration says so")
    func conflict() async throws {
        let daemon = try DaemonProcess(configuration: "watch: [{directory: @DIR@/downloads/drop}]\n")
        try daemon.directory.makeDirectory("downloads/drop")
        let check = try daemon.launch(extra: ["--check-config"])
        #expect(try await check.wait() == .exited(0))
        #expect(check.standardError.contains("/downloads/drop is not watched: downloads may be stored there"))
    }
}
