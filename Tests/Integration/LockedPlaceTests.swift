import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Flags that keep even root from changing files (chattr(1)), and files that can never fit.
@Suite("Locked places and files that never fit", .serialized, .timeLimit(.minutes(3)))
struct LockedPlaceTests {
    private static let resource = Resource(size: 4 * mebibyte)
    private static let configuration =
        oneConnection + "retry: {attempts: 3, base-delay: 100ms, max-delay: 300ms}\ndisk: {min-free: 0}\n"

    /// A daemon with an ext4 file system at `downloads/volume`.
    private struct Scene {
        let daemon: DaemonProcess
        let path: String
        let disk: Mount
        let server: ScriptedServer

        init() async throws {
            server = try ScriptedServer([
                "/f": [.drip(resource, after: mebibyte, bytesPerSecond: 1 << 19), .serve(resource)]
            ])
            daemon = try await DaemonProcess.started(configuration)
            path = try daemon.directory.makeDirectory("downloads/volume")
            let image = daemon.directory.file("image")
            try await Mount.makeExt4(image: image, bytes: 32 * mebibyte)
            disk = try await Mount.ext4(image: image, at: path)
        }

        func flag(_ change: String, _ path: String) async throws {
            let outcome = try await run(["chattr", change, path])
            guard outcome.succeeded else { throw Unusable(reason: outcome.error) }
        }

        /// Checks that the task waits with a reason that names the cause, uses up no attempts, and resumes from the
        /// bytes that it has.
        func expectHeals(_ id: TaskID, after flag: String, on place: String, requests: Int) async throws {
            let task = try await daemon.state(of: id, "to wait for its place") {
                $0.reason == .disk && $0.error?.message.contains("chattr") == true
            }
            #expect(task.state == .waiting && task.error?.code == .permissionDenied)
            #expect(task.error?.message.contains("chattr -\(flag)") == true, "\(task.error?.message ?? "")")
            var looks: Set<Int64> = []
            try await eventually(that: "the task looks for its place again", within: .seconds(20)) {
                let later = try daemon.task(id)
                if let next = later.notBefore { looks.insert(next) }
                #expect(later.state != .failed && later.attempts <= 1, "\(later)")
                return looks.count > 5
            }
            try await self.flag("-\(flag)", place)
            let done = try await daemon.settled(id, within: .seconds(20))
            #expect(done.state == .completed)
            #expect(LockedPlaceTests.resource.difference(fromFileAt: "\(path)/f") == nil)
            #expect(server.requests().count == requests)
            daemon.expectTidy()
            try await daemon.terminate()
            try await disk.unmount()
        }
    }

    @Test(
        "a part that nobody may change is waited for, and its bytes count afterwards", .needsLoopDevices,
        arguments: ["i", "a"])
    func part(flag: String) async throws {
        let scene = try await Scene()
        let id = try await scene.daemon.add("--directory", "volume", scene.server.url("/f"))
        try await scene.daemon.state(of: id, "to begin") { $0.bytesDone > mebibyte }
        try await eventually(that: "what is on the disk has been noted", within: .seconds(10)) {
            try await run(["sqlite3", "\(scene.daemon.stateDirectory)/dld.db", "SELECT count(*) FROM task_resume"])
                .lines
                == ["1"]
        }
        let part = "\(scene.daemon.downloads)/\(try #require(scene.daemon.partFiles.first))"
        if flag == "a" {
            // A process that has the file open can still write to it.
            #expect(try await scene.daemon.dlctl("pause", "\(id)").succeeded)
        }
        try await scene.flag("+\(flag)", part)
        if flag == "a" { #expect(try await scene.daemon.dlctl("resume", "\(id)").succeeded) }
        try await scene.expectHeals(id, after: flag, on: part, requests: 2)
    }

    @Test("a directory that lets no name be changed keeps the whole file until it does", .needsLoopDevices)
    func directory() async throws {
        let scene = try await Scene()
        try await scene.flag("+a", scene.path)
        let id = try await scene.daemon.add("--directory", "volume", scene.server.url("/f"))
        try await scene.expectHeals(id, after: "a", on: scene.path, requests: 1)
    }

    @Test(
        "a server that claims more than any disk holds fails its task at once",
        arguments: [
            1 << 53, .max - 1, .max,
        ] as [Int64])
    func claims(length: Int64) async throws {
        let server = try ScriptedServer(["/f": [.claim(Resource(size: 1_000), length: length)]])
        let daemon = try await DaemonProcess.started(Self.configuration)
        let task = try await daemon.settled(try await daemon.add(server.url("/f")), within: .seconds(20))
        #expect(task.state == .failed)
        #expect(task.error?.code == .tooLarge, "\(task)")
        #expect(daemon.partFiles == [] && server.requests().count == 1)
    }

    @Test("a file past the process's limit fails before a byte of it is taken")
    func processLimit() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 8 * mebibyte))]])
        let daemon = try await DaemonProcess.started(
            Self.configuration, prefix: ["prlimit", "--fsize=\(4 * mebibyte)"])
        let task = try await daemon.settled(try await daemon.add(server.url("/f")))
        #expect(task.state == .failed && task.error?.code == .tooLarge && task.bytesDone == 0)
        #expect(daemon.partFiles == [])
    }
}
