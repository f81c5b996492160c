import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Volumes that become read-only or disappear during a transfer.
@Suite("Vanishing places", .serialized, .timeLimit(.minutes(3)), .needsLoopDevices)
struct VanishingPlaceTests {
    private static let resource = Resource(size: 6 * mebibyte, seed: 4)

    /// A daemon with a running download to the volume at `downloads/volume`.
    private struct Scene {
        let daemon: DaemonProcess
        let server: ScriptedServer
        let image: String
        let path: String
        let disk: Mount
        let id: TaskID

        init() async throws {
            server = try ScriptedServer([
                "/f": [.drip(resource, after: 2 * mebibyte, bytesPerSecond: 1 << 19), .serve(resource)]
            ])
            daemon = try await DaemonProcess.started(
                oneConnection + "retry: {attempts: 4, base-delay: 100ms, max-delay: 300ms}\ndisk: {min-free: 0}\n")
            path = try daemon.directory.makeDirectory("downloads/volume")
            image = daemon.directory.file("image")
            try await Mount.makeExt4(image: image, bytes: 32 * mebibyte)
            disk = try await Mount.ext4(image: image, at: path)
            id = try await daemon.add("--directory", "volume", server.url("/f"))
            try await daemon.state(of: id, "to begin") { $0.bytesDone > 2 * mebibyte }
        }

        /// Returns once the task has checked its place more often than a server is asked, without using up attempts.
        func looksAgain() async throws {
            let first = try await daemon.state(of: id, "to wait for its place") { $0.reason == .disk }
            var looks: Set<Int64> = []
            try await eventually(that: "the task looks for its place again", within: .seconds(20)) {
                let task = try daemon.task(id)
                if let next = task.notBefore { looks.insert(next) }
                #expect(task.attempts <= first.attempts + 1)
                return looks.count > 6
            }
        }
    }

    @Test("F20: a volume that turns read-only stops its task and keeps the bytes; others run, and it goes on later")
    func readOnly() async throws {
        let scene = try await Scene()
        let (daemon, id) = (scene.daemon, scene.id)
        let noted = "SELECT count(*) FROM task_resume"
        try await eventually(that: "what is on the disk has been noted", within: .seconds(10)) {
            try await run(["sqlite3", "\(daemon.stateDirectory)/dld.db", noted]).lines == ["1"]
        }
        try await scene.disk.turnReadOnly()
        try await scene.looksAgain()
        let stopped = try await daemon.state(of: id, "to wait") { $0.state != .active && $0.state != .queued }
        #expect(stopped.state == .waiting)
        #expect(stopped.reason == .disk)
        #expect(stopped.error?.code == .io)
        #expect(stopped.error?.message.contains("Read-only file system") == true)
        let other = try ScriptedServer(["/other": [.serve(Resource(size: 30_000))]])
        #expect(try await daemon.dlctl("add", "--wait", "-o", "other", other.url("/other")).succeeded)
        #expect(!exists("\(scene.path)/f"))
        // Files may not be open there when the volume is unmounted.
        try await daemon.terminate()
        try await scene.disk.unmount()
        let again = try await Mount.ext4(image: scene.image, at: scene.path)
        try await daemon.start()
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: "\(scene.path)/f") == nil)
        // The server received no request while the volume was read-only, and the bytes received before still count.
        #expect(scene.server.requests().count == 2)
        #expect(scene.server.requests().last?.header("range") != nil)
        daemon.expectTidy()
        try await daemon.terminate()
        try await again.unmount()
    }

    @Test("F20: a volume taken off its path stops its task, nothing lands beneath, and back in its place it goes on")
    func detached() async throws {
        let scene = try await Scene()
        let (daemon, id) = (scene.daemon, scene.id)
        try scene.disk.detach()
        let stopped = try await daemon.state(of: id, "to wait") { $0.state != .active && $0.state != .queued }
        #expect(stopped.state == .waiting)
        #expect(stopped.reason == .disk)
        #expect(stopped.error?.code == .io)
        #expect(stopped.error?.message.contains("mount it again") == true)
        // Retries meanwhile do not start anew in the directory that is now visible.
        try await scene.looksAgain()
        #expect(try FileManager.default.contentsOfDirectory(atPath: scene.path) == [])
        #expect(scene.server.requests().count == 1)
        try await eventually(that: "the volume is let go of", within: .seconds(20)) {
            try await run(["losetup", "--associated", scene.image]).output.isEmpty
        }
        let again = try await Mount.ext4(image: scene.image, at: scene.path)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: "\(scene.path)/f") == nil)
        #expect(scene.server.requests().count == 2)
        #expect(scene.server.requests().last?.header("range") != nil)
        daemon.expectTidy()
        try await daemon.terminate()
        try await again.unmount()
    }

    @Test("F20: a volume taken off while its task is paused holds it up once resumed, and nothing lands beneath")
    func detachedWhilePaused() async throws {
        let scene = try await Scene()
        let (daemon, id) = (scene.daemon, scene.id)
        #expect(try await daemon.dlctl("pause", "\(id)").succeeded)
        try scene.disk.detach()
        try await eventually(that: "the volume is let go of", within: .seconds(20)) {
            try await run(["losetup", "--associated", scene.image]).output.isEmpty
        }
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        let stopped = try await daemon.state(of: id, "to wait") { $0.state != .active && $0.state != .queued }
        #expect(stopped.state == .waiting && stopped.error?.message.contains("mount it again") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scene.path) == [])
        #expect(scene.server.requests().count == 1)
        let again = try await Mount.ext4(image: scene.image, at: scene.path)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: "\(scene.path)/f") == nil)
        daemon.expectTidy()
        try await daemon.terminate()
        try await again.unmount()
    }

    @Test("F20: a volume mounted over the directory of a task that runs gets the file, and nothing stays beneath")
    func covered() async throws {
        let scene = try await Scene()
        let (daemon, id) = (scene.daemon, scene.id)
        let cover = try await Mount.tmpfs(at: scene.path, bytes: 32 * mebibyte)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: "\(scene.path)/f") == nil)
        try await daemon.terminate()
        try await cover.unmount()
        #expect(try FileManager.default.contentsOfDirectory(atPath: scene.path) == ["lost+found"])
        try await scene.disk.unmount()
    }

    @Test("F20: a bind mount taken away from under its task holds it up, until it is back")
    func bound() async throws {
        let server = try ScriptedServer([
            "/f": [.drip(Self.resource, after: 2 * mebibyte, bytesPerSecond: 1 << 20), .serve(Self.resource)]
        ])
        let daemon = try await DaemonProcess.started(
            oneConnection + "retry: {attempts: 4, base-delay: 100ms, max-delay: 300ms}\ndisk: {min-free: 0}\n")
        let path = try daemon.directory.makeDirectory("downloads/bound")
        let source = try daemon.directory.makeDirectory("source")
        try #require(try await run(["mount", "--bind", source, path]).succeeded)
        let id = try await daemon.add("--directory", "bound", server.url("/f"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 2 * mebibyte }
        try #require(try await run(["umount", "-l", path]).succeeded)
        let stopped = try await daemon.state(of: id, "to wait") { $0.state != .active && $0.state != .queued }
        #expect(stopped.state == .waiting && stopped.error?.code == .io)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [])
        try #require(try await run(["mount", "--bind", source, path]).succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: "\(source)/f") == nil)
        try await daemon.terminate()
        #expect(try await run(["umount", path]).succeeded)
    }
}
