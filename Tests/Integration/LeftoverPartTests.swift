import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Part files that no task resumes.
@Suite("Left-over parts", .serialized, .timeLimit(.minutes(3)))
struct LeftoverPartTests {
    private static let resource = Resource(size: 3 * mebibyte)

    private static func server() throws -> ScriptedServer {
        try ScriptedServer(["/f": [.drip(resource, after: mebibyte, bytesPerSecond: 1 << 18), .serve(resource)]])
    }

    /// Adds a task and pauses it once it has a part file.
    private func paused(
        _ daemon: DaemonProcess, _ server: ScriptedServer, _ arguments: String...
    ) async throws -> TaskID {
        let outcome = try await daemon.dlctl(["add"] + arguments + [server.url("/f")])
        let id = TaskID(try #require(outcome.lines.first.flatMap { Int64($0) }, "\(outcome.error)"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > mebibyte }
        #expect(try await daemon.dlctl("pause", "\(id)").succeeded)
        return id
    }

    private func identity(_ daemon: DaemonProcess) throws -> String {
        let part = try #require(daemon.partFiles.first)
        return String(try #require(part.split(separator: "-").dropFirst().first))
    }

    @Test("skip after a stop leaves nothing, and a start removes what an older daemon left")
    func skip() async throws {
        let server = try Self.server()
        let daemon = try await DaemonProcess.started(oneConnection + quickRetries)
        let id = try await paused(daemon, server, "--on-conflict", "skip", "-o", "x")
        let identity = try identity(daemon)
        try Resource(size: 10).write(to: daemon.path("x"))
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(daemon.partFiles == [])
        try await daemon.terminate()
        let left = daemon.path(".dld-\(identity)-\(id).part")
        try Resource(size: 10).write(to: left)
        try await daemon.start()
        try await eventually(that: "the part is gone", within: .seconds(20)) { !exists(left) }
        daemon.expectTidy()
    }

    @Test(
        "a part whose task was removed while its disk was away goes when a daemon starts with the disk",
        .needsLoopDevices)
    func removedMeanwhile() async throws {
        let server = try Self.server()
        let daemon = try await DaemonProcess.started(oneConnection + quickRetries + "disk: {min-free: 0}\n")
        let path = try daemon.directory.makeDirectory("downloads/volume")
        let image = daemon.directory.file("image")
        try await Mount.makeExt4(image: image, bytes: 32 * mebibyte)
        let disk = try await Mount.ext4(image: image, at: path)
        let id = try await paused(daemon, server, "--directory", "volume")
        #expect(daemon.partFiles.count == 1)
        try await daemon.terminate()
        try await disk.unmount()
        try await daemon.start()
        #expect(try await daemon.dlctl("remove", "--yes", "\(id)").succeeded)
        try await daemon.terminate()
        let again = try await Mount.ext4(image: image, at: path)
        #expect(daemon.partFiles.count == 1)
        try await daemon.start()
        try await eventually(that: "the part is gone", within: .seconds(20)) { daemon.partFiles.isEmpty }
        try await daemon.terminate()
        try await again.unmount()
    }

    @Test("an older copy of the database that is put back leaves the parts of tasks that it does not know")
    func olderCopy() async throws {
        let slow = ScriptedAnswer.drip(Self.resource, after: mebibyte, bytesPerSecond: 1 << 18)
        let server = try ScriptedServer(["/f": [slow, slow, .serve(Self.resource)]])
        let daemon = try await DaemonProcess.started(oneConnection + quickRetries)
        let copy = daemon.directory.file("copy.db")
        let old = try await daemon.add("--paused", server.url("/f"))
        #expect(try await daemon.dlctl("remove", "--yes", "\(old)").succeeded)
        let database = "\(daemon.stateDirectory)/dld.db"
        #expect(try await run(["sqlite3", database, ".backup \(copy)"]).succeeded)
        let ids = [try await paused(daemon, server, "-o", "a"), try await paused(daemon, server, "-o", "b")]
        let parts = daemon.partFiles.sorted()
        #expect(parts.count == 2)
        let identity = try identity(daemon)
        try await daemon.terminate()
        let newer = daemon.directory.file("newer.db")
        for suffix in ["-wal", "-shm"] { _ = unlink(database + suffix) }
        try FileManager.default.moveItem(atPath: database, toPath: newer)
        try FileManager.default.copyItem(atPath: copy, toPath: database)
        try await daemon.start()
        // The older copy assigns the same ids again, to files elsewhere, and those tasks end.
        let small = try ScriptedServer(["/s": [.serve(Resource(size: 100))]])
        for id in ids {
            #expect(try await daemon.add("--directory", "elsewhere", small.url("/s")) == id)
            #expect(try await daemon.settled(id).state == .completed)
        }
        #expect(try await daemon.dlctl("remove", "--yes", "\(ids[0])").succeeded)
        try await daemon.terminate()
        // The removal of a part file that is certainly left over shows that the directory was scanned.
        try Resource(size: 10).write(to: daemon.path(".dld-\(identity)-\(old).part"))
        try await daemon.start()
        try await eventually(that: "the directory was looked at", within: .seconds(20)) {
            daemon.log.contains("removed part files that no task uses")
        }
        #expect(daemon.partFiles.sorted() == parts)
        try await daemon.terminate()
        for suffix in ["", "-wal", "-shm"] { _ = unlink(database + suffix) }
        try FileManager.default.moveItem(atPath: newer, toPath: database)
        try await daemon.start()
        for id in ids {
            #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
            let task = try await daemon.settled(id)
            #expect(task.state == .completed && task.bytesFetched == Self.resource.size, "\(task)")
        }
        daemon.expectTidy()
    }
}
