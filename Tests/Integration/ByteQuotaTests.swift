import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The bytes that each user's downloads may take up on disk.
@Suite("Bytes of each owner", .serialized, .timeLimit(.minutes(3)), .enabled(if: isRoot))
struct ByteQuotaTests {
    private static let (one, other) = (UInt32(64_111), UInt32(64_112))
    private static let limit: Int64 = 10 * mebibyte
    private static let configuration = """
        control: {mode: 0666}
        disk: {min-free: 0}
        downloads: {layout: per-user}

        """ + quickRetries

    private func daemon(_ limits: String = "active-tasks: 4, ") async throws -> DaemonProcess {
        let daemon = try DaemonProcess(
            configuration: Self.configuration + "limits: {\(limits)bytes-per-owner: 10M}\n", mode: 0o755)
        #expect(chmod(daemon.downloads, 0o755) == 0)
        try await daemon.start()
        return daemon
    }

    private func dlctl(_ uid: UInt32, _ daemon: DaemonProcess, _ arguments: [String]) async throws -> Outcome {
        let user = ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
        let client = try DaemonProcess.program("dlctl")
        return try await run(user + [client, "--socket", daemon.socket] + arguments, within: .seconds(60))
    }

    private func add(_ uid: UInt32, _ daemon: DaemonProcess, _ arguments: String...) async throws -> TaskID {
        let added = try await dlctl(uid, daemon, ["add"] + arguments)
        return TaskID(try #require(Int64(added.lines.first ?? ""), "\(added.error)"))
    }

    private func parked(_ id: TaskID, _ daemon: DaemonProcess) async throws -> TaskStatus {
        let task = try await daemon.state(of: id, "to wait") { $0.state == .waiting && $0.reason == .quota }
        #expect(task.error?.code == .quota && task.notBefore == nil)
        return task
    }

    private func used(_ uid: UInt32, _ daemon: DaemonProcess) async throws -> Int64? {
        let shown = try await dlctl(uid, daemon, ["status", "--json"])
        let status = try JSONDecoder().decode(DaemonStatus.self, from: Data(shown.output.utf8))
        #expect(status.storage?.limit == Self.limit)
        return status.storage?.owners.first { $0.owner == uid }?.bytes
    }

    /// Returns the total size of the files in a user's directory.
    private func stored(_ uid: UInt32, _ daemon: DaemonProcess) -> Int64 {
        let directory = daemon.path("\(uid)")
        return TemporaryDirectory.names(beneath: directory).reduce(0) { $0 + (size(of: "\(directory)/\($1)") ?? 0) }
    }

    @Test("A31: a file that does not fit waits before its bytes, nobody else's does, and it goes on when there is room")
    func known() async throws {
        let (file, small) = (Resource(size: 6 * mebibyte), Resource(size: 1_000))
        let server = try ScriptedServer(["/a": [.serve(file)], "/b": [.serve(file)], "/s": [.serve(small)]])
        let daemon = try await daemon()
        let first = try await add(Self.one, daemon, server.url("/a"))
        #expect(try await daemon.settled(first).state == .completed)
        let second = try await add(Self.one, daemon, server.url("/b"))
        let task = try await parked(second, daemon)
        let missing = 6 * mebibyte
        #expect(
            task.error?.message
                == "the file needs \(missing) bytes more, and \(missing) of the \(Self.limit) bytes allowed are used "
                + "by your downloads: remove some with their files (dlctl remove --delete-file), or have "
                + "limits.bytes-per-owner raised")
        #expect(task.bytesTotal == missing && task.bytesDone == 0)
        #expect(stored(Self.one, daemon) == missing)
        let others = try await dlctl(Self.other, daemon, ["add", "--wait", server.url("/a")])
        #expect(others.succeeded, "\(others.error)")
        // A file that fits is still downloaded, and changes nothing else.
        let small2 = try await add(Self.one, daemon, server.url("/s"))
        #expect(try await daemon.settled(small2).state == .completed)
        #expect(try daemon.task(second).state == .waiting)
        #expect(try await used(Self.one, daemon) == missing + 1_000)
        #expect(try await used(Self.other, daemon) == missing)
        let shown = try await dlctl(Self.one, daemon, ["status"])
        #expect(shown.output.contains("  6.0 MiB of 10.0 MiB\n"), "\(shown.output)")
        #expect(shown.output.contains("1: quota exceeded\n"), "\(shown.output)")
        // The usage is known after a crash too, and no server is asked again for files that do not fit.
        let requests = server.requests().count
        try await daemon.kill()
        try await daemon.start()
        #expect(try await used(Self.one, daemon) == missing + 1_000)
        let third = try await add(Self.one, daemon, "-o", "s2", server.url("/s"))
        #expect(try await daemon.settled(third).state == .completed)
        #expect(try daemon.task(second).state == .waiting && server.requests().count == requests + 1)

        let removed = try await dlctl(Self.one, daemon, ["remove", "--delete-file", "\(first)"])
        #expect(removed.succeeded, "\(removed.error)")
        #expect(try await daemon.settled(second).state == .completed)
        #expect(file.difference(fromFileAt: daemon.path("\(Self.one)/b")) == nil)
        daemon.expectTidy()
    }

    @Test("A31: a file of unknown size ends with its owner's quota, is not fetched over and over, and takes up no more")
    func unknown() async throws {
        let (file, small) = (Resource(size: 16 * mebibyte), Resource(size: 1_000))
        let server = try ScriptedServer(["/c": [.chunked(file)], "/s": [.serve(small)]])
        let daemon = try await daemon()
        let id = try await add(Self.one, daemon, server.url("/c"))
        let task = try await parked(id, daemon)
        #expect(task.bytesDone <= Self.limit && stored(Self.one, daemon) <= Self.limit)
        let others = try await dlctl(Self.other, daemon, ["add", "--wait", server.url("/s")])
        #expect(others.succeeded, "\(others.error)")
        // The end of another task of the same owner does not start the task again either.
        let next = try await add(Self.one, daemon, server.url("/s"))
        _ = try await daemon.state(of: next, "to end") { $0.state == .completed || $0.reason == .quota }
        #expect(try daemon.task(id).state == .waiting)
        #expect(server.requests().count { $0.path == "/c" } == 1)
        try daemon.configure(Self.configuration + "limits: {bytes-per-owner: 20M}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(try await daemon.settled(next).state == .completed)
        #expect(file.difference(fromFileAt: daemon.path("\(Self.one)/c")) == nil)
        daemon.expectTidy()
    }

    @Test("A31: what runs is promised its size, so that many at once take up no more than one after another")
    func promised() async throws {
        let file = Resource(size: 4 * mebibyte)
        let server = try ScriptedServer(["/f": [.drip(file, after: mebibyte, bytesPerSecond: 1_000)]])
        let daemon = try await daemon("active-tasks: 4, connections-per-task: 1, ")
        for name in ["a", "b", "c", "d"] { _ = try await add(Self.one, daemon, "-o", name, server.url("/f")) }
        try await eventually(that: "two run and two wait") {
            let tasks = try daemon.tasks()
            return tasks.count { $0.phase == .transferring } == 2 && tasks.count { $0.reason == .quota } == 2
        }
        #expect(try await used(Self.one, daemon) == 8 * mebibyte)
        #expect(stored(Self.one, daemon) <= 8 * mebibyte)
        // Removing a part file makes room for one of the waiting tasks.
        let running = try #require(try daemon.tasks().first { $0.state == .active })
        #expect(try await dlctl(Self.one, daemon, ["remove", "\(running.id)"]).succeeded)
        try await eventually(that: "another runs in its place") {
            let tasks = try daemon.tasks()
            return tasks.count { $0.phase == .transferring } == 2 && tasks.count { $0.reason == .quota } == 1
        }
    }

    @Test("A31: 300 tasks of one whose quota is used up hold up neither another's nor what she uploads")
    func fair() async throws {
        let (full, file) = (Resource(size: 10 * mebibyte), Resource(size: 1_000))
        let server = try ScriptedServer(["/full": [.serve(full)], "/f": [.serve(file)], "/in": [.status(200)]])
        let daemon = try await daemon("active-tasks: 2, ")
        let first = try await add(Self.one, daemon, server.url("/full"))
        #expect(try await daemon.settled(first).state == .completed)
        let place = try TemporaryDirectory()
        let list = try place.write(String(repeating: server.url("/f") + "\n", count: 300), to: "list.txt")
        #expect(chmod(place.path, 0o755) == 0 && chmod(list, 0o644) == 0)
        #expect(try await dlctl(Self.one, daemon, ["add", "--input", list]).succeeded)
        let others = try await dlctl(Self.other, daemon, ["add", "--wait", server.url("/f")])
        #expect(others.succeeded, "\(others.error)")
        let sent = try await dlctl(Self.one, daemon, ["upload", "--wait", list, server.url("/in")])
        #expect(sent.succeeded, "\(sent.error)")
        try await eventually(that: "all of hers wait") { try daemon.tasks().count { $0.reason == .quota } == 300 }
        #expect(server.requests().count { $0.path == "/f" } == 1, "for the other's alone")
        // All of them fit then, a few at a time.
        #expect(try await dlctl(Self.one, daemon, ["remove", "--delete-file", "\(first)"]).succeeded)
        try await eventually(that: "they complete", within: .seconds(60)) {
            try daemon.tasks().count { $0.state == .completed && $0.owner == Self.one } == 301
        }
        #expect(try await used(Self.one, daemon) == 300_000)
        daemon.expectTidy()
    }
}
