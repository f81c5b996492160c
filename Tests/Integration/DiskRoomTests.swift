import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Full disks, and file size limits with the same effect.
@Suite("Room on disks", .serialized, .timeLimit(.minutes(3)), .needsRoot)
struct DiskRoomTests {
    private static let retries = "retry: {attempts: 10, base-delay: 500ms, max-delay: 1s}\ndisk: {min-free: 0}\n"
    private static let other = Resource(size: 30_000, seed: 99)

    /// Fails the test unless a task on another volume completes.
    private func expectOthersRun(_ daemon: DaemonProcess) async throws {
        let server = try ScriptedServer(["/other": [.serve(Self.other)]])
        let outcome = try await daemon.dlctl("add", "--wait", "-o", "other", server.url("/other"))
        #expect(outcome.succeeded, "\(outcome.error)")
    }

    /// Fails the test if the daemon uses the processor, or sends requests, for work that cannot succeed.
    private func expectQuiet(_ daemon: DaemonProcess, _ server: ScriptedServer) async throws {
        let (requests, time) = (server.requests().count, daemon.processorTime)
        #expect(time > .zero)
        try await Task.sleep(for: .seconds(2))
        #expect(server.requests().count - requests <= 5)
        #expect(daemon.processorTime - time < .milliseconds(700))
    }

    private func parked(_ id: TaskID, _ daemon: DaemonProcess) async throws -> TaskStatus {
        let task = try await daemon.state(of: id, "to wait") { $0.state == .waiting && $0.reason == .diskFull }
        #expect(task.error?.code == .diskFull)
        return task
    }

    @Test("F13: a full disk parks its task quietly, others go on, and so does it when there is room")
    func full() async throws {
        let resource = Resource(size: 16 * mebibyte)
        let server = try ScriptedServer(["/file": [.chunked(resource)]])
        let daemon = try await DaemonProcess.started(Self.retries)
        let small = try daemon.directory.makeDirectory("downloads/small")
        let disk = try await Mount.tmpfs(at: small, bytes: 4 * mebibyte)
        let id = try await daemon.add("--directory", "small", server.url("/file"))
        _ = try await parked(id, daemon)
        try await expectQuiet(daemon, server)
        try await expectOthersRun(daemon)
        #expect(!exists("\(small)/file"))
        try await disk.resize(bytes: 32 * mebibyte)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: "\(small)/file") == nil)
        daemon.expectTidy()
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("the state shows a disk as full exactly if no download may write there")
    func shown() async throws {
        let server = try ScriptedServer([
            "/small": [.serve(Resource(size: 5 * mebibyte))], "/tiny": [.serve(Resource(size: 2))],
        ])
        let daemon = try DaemonProcess(configuration: "retry: {attempts: 10, base-delay: 500ms, max-delay: 1s}\n")
        let disk = try await Mount.tmpfs(at: daemon.downloads, bytes: 20 * mebibyte)
        try await daemon.start()
        let empty = try await daemon.dlctl("status").output
        #expect(empty.contains("20.0 MiB free of 20.0 MiB, 1.0 MiB stay free\n"), "\(empty)")
        #expect(try await daemon.dlctl("add", "--wait", server.url("/small")).succeeded)
        try Resource(size: 14 * mebibyte).write(to: daemon.path("ballast"))
        let id = try await daemon.add(server.url("/tiny"))
        _ = try await parked(id, daemon)
        try await eventually(that: "the disk is shown as full") {
            try await daemon.dlctl("status").output.contains("1.0 MiB stay free: full\n")
        }
        #expect(unlink(daemon.path("ballast")) == 0)
        #expect(try await daemon.settled(id).state == .completed)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F13: a part of no use any more is no reason to wait for room")
    func ownPart() async throws {
        let resource = Resource(size: 12 * mebibyte)
        let server = try ScriptedServer([
            "/file": [.serveThenCut(resource, after: 8 * mebibyte), .serve(Resource(size: 11 * mebibyte, seed: 2))]
        ])
        let daemon = try await DaemonProcess.started(oneConnection + Self.retries)
        let small = try daemon.directory.makeDirectory("downloads/small")
        let disk = try await Mount.tmpfs(at: small, bytes: 16 * mebibyte)
        let id = try await daemon.add("--directory", "small", server.url("/file"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Resource(size: 11 * mebibyte, seed: 2).difference(fromFileAt: "\(small)/file") == nil)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F14: on a full state disk nothing is added, what runs loses nothing, and all goes on when there is room")
    func fullState() async throws {
        let place = try TemporaryDirectory()
        let state = try place.makeDirectory("state")
        let disk = try await Mount.tmpfs(at: state, bytes: 4 * mebibyte)
        let resource = Resource(size: 3 * mebibyte)
        let server = try ScriptedServer(["/f": [.drip(resource, after: mebibyte, bytesPerSecond: 1 << 20)]])
        let daemon = try await DaemonProcess.started(Self.retries, stateDirectory: state)
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        // The free pages within the log are used up as well.
        #expect(throws: SystemError.self) { try Resource(size: 8 * mebibyte).write(to: "\(state)/ballast") }
        let urls = (0..<3000).map { server.url("/many-\($0)-\(String(repeating: "x", count: 200))") }
        let refused = try await daemon.dlctl(["add", "--input", "-"], input: urls.joined(separator: "\n"))
        #expect(refused.status == .exited(1))
        #expect(refused.error.contains("full"), "\(refused.error)")
        #expect(try daemon.tasks().map(\.id) == [id])
        try await eventually(that: "the file is there", within: .seconds(20)) { exists(daemon.path("f")) }
        #expect(daemon.answers)
        #expect(unlink("\(state)/ballast") == 0)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(server.requests(for: "/f").count == 1)
        try await expectOthersRun(daemon)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F14, A31: where the state disk is almost full nothing is added, and what is there goes on to its end")
    func reserve() async throws {
        let place = try TemporaryDirectory()
        let state = try place.makeDirectory("state")
        // An eighth of the disk is kept in reserve.
        let disk = try await Mount.tmpfs(at: state, bytes: 32 * mebibyte)
        let resource = Resource(size: 3 * mebibyte)
        let server = try ScriptedServer(["/f": [.drip(resource, after: mebibyte, bytesPerSecond: 1 << 20)]])
        let daemon = try await DaemonProcess.started(Self.retries, stateDirectory: state)
        let id = try await daemon.add(server.url("/f"))
        let held = try await daemon.add("--paused", server.url("/held"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 0 }
        var information = statvfs()
        try #require(statvfs(state, &information) == 0)
        let free = Int64(information.f_bavail) * Int64(information.f_frsize)
        try Resource(size: free - 3 * mebibyte).write(to: "\(state)/ballast")
        let url = server.url("/more")
        for (arguments, input) in [(["add", url], ""), (["add", "--input", "-"], url)] {
            let refused = try await daemon.dlctl(arguments, input: input)
            #expect(refused.status == .exited(1) && refused.error.contains("almost full"), "\(refused.error)")
        }
        let grown = try await daemon.dlctl("set", "\(held)", "--header", "A: \(String(repeating: "b", count: 1_000))")
        #expect(grown.status == .exited(1) && grown.error.contains("almost full"), "\(grown.error)")
        #expect(try daemon.tasks().map(\.id).sorted() == [id, held])
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(try await daemon.dlctl("cancel", "\(held)").succeeded)
        #expect(try await daemon.dlctl("remove", "\(held)").succeeded)
        #expect(unlink("\(state)/ballast") == 0)
        try await expectOthersRun(daemon)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F14, A31: what filled the state disk can be removed, whole and at once, and others then add again")
    func filled() async throws {
        let place = try TemporaryDirectory()
        let state = try place.makeDirectory("state")
        let disk = try await Mount.tmpfs(at: state, bytes: 96 * mebibyte)
        let daemon = try await DaemonProcess.started(stateDirectory: state)
        let fields = (0..<30).flatMap { ["--header", "A\($0): \(String(repeating: "b", count: 8_000))"] }
        let urls = (0..<3).map { "http://127.0.0.1:9/\($0)" }.joined(separator: "\n")
        var (count, refusal) = (0, "")
        while refusal.isEmpty, count < 600 {
            let outcome = try await daemon.dlctl(["add", "--paused", "--input", "-"] + fields, input: urls)
            if outcome.succeeded { count += 3 } else { refusal = outcome.error }
        }
        #expect(count > 200 && refusal.contains("almost full"), "\(count): \(refusal)")
        let removed = try await daemon.dlctl("remove", "--all")
        #expect(removed.succeeded, "\(removed.error)")
        #expect(try daemon.tasks().isEmpty)
        let again = try await daemon.dlctl(["add", "--paused", "--input", "-"] + fields, input: urls)
        #expect(again.succeeded, "\(again.error)")
        #expect(daemon.answers)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F15: a file that cannot fit is refused before a byte of it is taken", .needsLoopDevices)
    func early() async throws {
        let resource = Resource(size: 12 * mebibyte)
        let server = try ScriptedServer(["/file": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(Self.retries)
        let small = try daemon.directory.makeDirectory("downloads/small")
        let image = daemon.directory.file("image")
        try await Mount.makeExt4(image: image, bytes: 16 * mebibyte)
        let disk = try await Mount.ext4(image: image, at: small)
        // The file would fit without this ballast.
        try Resource(size: 8 * mebibyte).write(to: "\(small)/ballast")
        let id = try await daemon.add("--directory", "small", server.url("/file"))
        let task = try await parked(id, daemon)
        #expect(task.bytesFetched == 0)
        #expect(daemon.partFiles == [])
        try await expectQuiet(daemon, server)
        try await expectOthersRun(daemon)
        #expect(unlink("\(small)/ballast") == 0)
        #expect(try await daemon.settled(id).state == .completed)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F15: a file that is larger than its disk fails at once, and others go on", .needsLoopDevices)
    func neverFits() async throws {
        let server = try ScriptedServer(["/file": [.serve(Resource(size: 64 * mebibyte))]])
        let daemon = try await DaemonProcess.started(Self.retries)
        let small = try daemon.directory.makeDirectory("downloads/small")
        let image = daemon.directory.file("image")
        try await Mount.makeExt4(image: image, bytes: 16 * mebibyte)
        let disk = try await Mount.ext4(image: image, at: small)
        let task = try await daemon.settled(try await daemon.add("--directory", "small", server.url("/file")))
        #expect(task.state == .failed && task.error?.code == .tooLarge && task.bytesFetched == 0)
        #expect(daemon.partFiles == [])
        try await expectOthersRun(daemon)
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F16: a disk that takes no more files parks the task as a full one does")
    func noInodes() async throws {
        let resource = Resource(size: mebibyte)
        let server = try ScriptedServer(["/file": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(Self.retries)
        let small = try daemon.directory.makeDirectory("downloads/small")
        let disk = try await Mount.tmpfs(at: small, bytes: 8 * mebibyte, inodes: 1)
        let id = try await daemon.add("--directory", "small", server.url("/file"))
        _ = try await parked(id, daemon)
        try await expectQuiet(daemon, server)
        try await expectOthersRun(daemon)
        try await disk.resize(inodes: 100)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: "\(small)/file") == nil)
        daemon.expectTidy()
        try await daemon.terminate()
        try await disk.unmount()
    }

    @Test("F17: a file past the process's limit is the end of its task and not of the daemon")
    func fileSize() async throws {
        // The response states no length.
        let server = try ScriptedServer(["/file": [.chunked(Resource(size: 8 * mebibyte))]])
        let daemon = try await DaemonProcess.started(
            Self.retries, prefix: ["prlimit", "--fsize=\(4 * mebibyte)"])
        let id = try await daemon.add(server.url("/file"))
        let task = try await daemon.settled(id)
        #expect(task.state == .failed)
        #expect(task.error?.code == .tooLarge)
        #expect(!exists(daemon.path("file")))
        try await expectOthersRun(daemon)
        #expect(daemon.isRunning)
    }
}

extension DaemonProcess {
    /// The processor time of all its threads so far.
    var processorTime: Duration {
        let text = pid.flatMap { try? String(contentsOfFile: "/proc/\($0)/stat", encoding: .utf8) } ?? ""
        // The second field is the program's name in parentheses; user and system time are the 14th and 15th (proc(5)).
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Int64(fields[11]), let system = Int64(fields[12]) else { return .zero }
        return .milliseconds((user + system) * 1000 / Int64(sysconf(Int32(_SC_CLK_TCK))))
    }
}
